// SPDX-License-Identifier: Apache-2.0
// Unwinders find their way through copies of functions. They ask the C library in which object a
// program counter is: by _dl_find_object() (glibc 2.35 and libgcc 12 on), and what they get for one
// in a copy is the object of the original, with the .eh_frame_hdr of the copies; or by
// dl_iterate_phdr() (LLVM's, older ones of gcc, libunwind), and what they find there are objects of
// copies as well. Code of other modules that lists objects finds none of ours: so the unwinders
// that ask in this way are known one by one, each by its module, and the function is changed for
// the first one.
//
// The table is only added to, and stays as the copies stay. The code: answering_code.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "inline/answering_code.h"
#include "inline/attachment.h"
#include "target/process.h"

namespace clew::inline_ {

inline constexpr size_t kAnswersMax = 255;
inline constexpr size_t kAskersMax = 255;

class Answers {
 public:
  // Nothing when its C library does not have _dl_find_object(). Where a session before has left
  // its own: those. Errors: as lead_to_copies(), and of make_finding_code() and adopt().
  static Expected<std::optional<Answers>> install(Attachment& attachment,
                                                  std::span<const target::ProcessModule> modules);

  // Those that a session before has installed in this room, and whose copies are there yet. Errors
  // also: Refused when others answer there.
  static Expected<std::optional<Answers>> adopt(Attachment& attachment,
                                                std::span<const target::ProcessModule> modules,
                                                uint64_t room_address);
  [[nodiscard]] uint64_t address() const { return room_.address; }

  // In front of the first call of the copies. Errors: Limit when the table is full.
  Expected<void> add(Attachment& attachment, const Answer& answer);

  // Who asks by dl_iterate_phdr(), from now on. Errors: Refused when it does not ask the process's
  // only C library by that; Limit; those of lead_to_copies() and make_listing_code().
  Expected<void> hear(Attachment& attachment, std::span<const target::ProcessModule> modules,
                      const Asker& asker);
  // Of one that is heard: its copies. Errors: Limit.
  Expected<void> hear_also(Attachment& attachment, const Asker& copies);
  [[nodiscard]] bool hears(const Asker& asker) const;

 private:
  explicit Answers(const CopyRoom& room) : room_(room) {}
  Expected<void> listen(Attachment& attachment, std::span<const target::ProcessModule> modules);
  CopyRoom room_;
  std::vector<Answer> table_;
  std::vector<Asker> askers_;
  bool listens_ = false;  // The window of dl_iterate_phdr() is led.
};

}  // namespace clew::inline_
