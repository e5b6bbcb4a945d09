// SPDX-License-Identifier: Apache-2.0
// The lobes of a recorded process: memory of ours that it has, too, and that outlives it. A lobe
// for each slot of its arena (abi/slot.h, abi/recorder.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <sys/types.h>

#include "abi/recorder.h"
#include "base/error.h"
#include "base/file_descriptor.h"

namespace clew::engine {

class LobeFile {
 public:
  // Errors: Io.
  static Expected<LobeFile> create(uint32_t slots);
  // That of a process in which a recorder has been, for so many slots, placed. Errors: Refused when
  // it is not the same, or we may not open it.
  static Expected<LobeFile> adopt(pid_t pid, uint32_t slots);
  LobeFile(LobeFile&& other) noexcept;
  LobeFile& operator=(LobeFile&&) = delete;
  ~LobeFile();

  [[nodiscard]] int descriptor() const { return file_.get(); }
  [[nodiscard]] uint64_t size_bytes() const { return size_bytes_; }
  // Where lobe 0 is in the process, of the file mapped at `address`: lobes are aligned.
  void place(uint64_t address);
  [[nodiscard]] uint64_t first_lobe() const { return first_lobe_; }
  [[nodiscard]] uint64_t lobe_of(uint32_t slot) const {
    return first_lobe_ + (uint64_t{slot} << abi::kLobeStrideLog2);
  }
  // The words of a slot's lobe, which the process writes. Valid while the object lives, after
  // place().
  [[nodiscard]] std::span<const uint32_t> words(uint32_t slot) const;
  // The cursor of an empty one: the first record goes to the word behind.
  [[nodiscard]] uint64_t start_of(uint32_t slot) const {
    return lobe_of(slot) + abi::kLobeBytes - abi::kRecordBytes;
  }
  // Whether the cursor is at a word of it.
  [[nodiscard]] bool has(uint32_t slot, uint64_t cursor) const;
  // Writes an extended record behind the newest one, which the cursor is at, for a thread that
  // stands. Where that one is not written yet it does nothing. Returns the cursor.
  uint64_t append(uint32_t slot, uint64_t cursor, std::span<const uint32_t> record);
  // Behind the lobes there is room for what the next recorder wants to know.
  [[nodiscard]] std::span<const uint8_t> note() const;
  // False when it is too long; the old one is gone then.
  bool write_note(std::span<const uint8_t> bytes);
  // The first slot from this one on in whose lobe something was written. Reads no page that is not
  // there.
  [[nodiscard]] std::optional<uint32_t> next_used(uint32_t slot) const;

 private:
  LobeFile(FileDescriptor file, uint64_t size, uint8_t* view)
      : file_(std::move(file)), size_bytes_(size), view_(view) {}
  static Expected<LobeFile> map(FileDescriptor file, uint32_t slots);
  [[nodiscard]] uint64_t offset_of(uint32_t slot) const;
  [[nodiscard]] uint32_t slot_count() const;

  FileDescriptor file_;
  uint64_t size_bytes_ = 0;
  uint8_t* view_ = nullptr;
  uint64_t address_ = 0;
  uint64_t first_lobe_ = 0;
};

}  // namespace clew::engine
