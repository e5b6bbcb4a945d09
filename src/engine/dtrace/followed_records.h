// SPDX-License-Identifier: Apache-2.0
// Records that wait until it is known what follows them: with -F a return's row is drawn by whether
// more clauses of its firing come after it on its processor.
//
// A firing's records are in the ring one after another, but a turn of reading may end between them.
// So a turn passes on what the turn before it had read, and keeps the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "abi/machine/window.h"

namespace clew::engine {

abi::MachineRecordHeader header_of(std::span<const uint8_t> record);

class FollowedRecords {
 public:
  using Record = std::vector<uint8_t>;
  // `next` is null when nothing is known to follow.
  using Take = std::function<void(std::span<const uint8_t>, const abi::MachineRecordHeader* next)>;

  // Begins with a MachineRecordHeader.
  void add(std::span<const uint8_t> record) { waiting_.emplace_back(record.begin(), record.end()); }
  [[nodiscard]] size_t size() const { return waiting_.size(); }
  // Passes on the first `count`.
  void take(size_t count, const Take& take);

 private:
  std::vector<Record> waiting_;
};

// Each of them with the header of the next Data record of its processor.
void follow(std::span<const FollowedRecords::Record> records, size_t count,
            const FollowedRecords::Take& take);

}  // namespace clew::engine
