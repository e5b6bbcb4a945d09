// SPDX-License-Identifier: Apache-2.0
// Numbers for what the events of a session come from: each traced process, the kernel, the uprobes.
// Each of their events has it (collect/event_batch.h). A number is never given twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "abi/arena.h"
#include "base/assert.h"
#include "collect/event_batch.h"

namespace clew::session {

class Source;

inline constexpr uint32_t kMembersMax = 1U << (32 - collect::kMemberShift);
static_assert(abi::kProcessesMax < 1U << collect::kMemberShift);

class Numbers {
 public:
  // The next number, of a member of `source`, which is borrowed. Fewer than kMembersMax are wanted.
  uint32_t next(Source& source) {
    CLEW_ASSERT(sources_.size() < kMembersMax);
    sources_.push_back(&source);
    return static_cast<uint32_t>(sources_.size() - 1);
  }
  [[nodiscard]] size_t size() const { return sources_.size(); }
  // Null for a number that nobody has.
  [[nodiscard]] Source* source_of(const collect::Event& event) const {
    const uint32_t number = collect::member_of(event);
    return number < sources_.size() ? sources_[number] : nullptr;
  }

 private:
  std::vector<Source*> sources_;  // By number.
};

}  // namespace clew::session
