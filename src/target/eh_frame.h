// SPDX-License-Identifier: Apache-2.0
// .eh_frame as a list of entries: which code each is about, and the call frame instructions of the
// entry and of what it shares with others. LSB core specification, chapter 10. What the
// instructions mean is left to the readers. Internal to target/.
//
// Everything in it is foreign: an entry that cannot be read is left out and named once, one whose
// length is wrong ends the list.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "target/byte_reader.h"
#include "target/elf_file.h"
#include "target/file_memory.h"

namespace clew::target {

// A block of bytes at an address, so that pc-relative pointers in it can be read.
struct Placed {
  std::span<const uint8_t> bytes;
  uint64_t address = 0;
};

// DW_EH_PE_omit: there is no pointer.
inline constexpr uint8_t kEhOmit = 0xff;
// DW_EH_PE_indirect: the pointer leads to a word that has the address.
inline constexpr uint8_t kEhIndirect = 0x80;
// What the pointer is relative to, and DW_EH_PE_pcrel: itself.
inline constexpr uint8_t kEhRelativeMask = 0x70;
inline constexpr uint8_t kEhRelativeToItself = 0x10;

// A value of a DW_EH_PE_* format: its low four bits count.
uint64_t read_eh_format(ByteReader& reader, uint8_t encoding);

// An encoded pointer at the reader's place. Nothing when it is omitted, indirect, or relative to
// something that only a running process knows. A value of 0 stays 0 (the linker's "no pointer").
std::optional<uint64_t> read_eh_pointer(ByteReader& reader, const Placed& block, uint8_t encoding,
                                        uint64_t data_base = 0);

// What entries share (a CIE).
struct EhCommon {
  uint8_t address_encoding = 0;
  uint8_t lsda_encoding = kEhOmit;
  // Where the personality routine is, or the word that holds its address, when the encoding is
  // indirect. Nothing when there is none, or when that cannot be read.
  uint8_t personality_encoding = kEhOmit;
  std::optional<uint64_t> personality = std::nullopt;
  bool has_augmentation_data = false;
  bool is_signal_frame = false;
  uint64_t code_alignment = 0;
  int64_t data_alignment = 0;
  uint64_t return_column = 0;
  std::span<const uint8_t> instructions;
};

// An entry about a stretch of code (an FDE).
struct EhEntry {
  const EhCommon* common = nullptr;  // As long as the EhFrame lives.
  size_t offset = 0;                 // In .eh_frame, for messages.
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  std::optional<uint64_t> lsda;
  std::span<const uint8_t> instructions;
};

class EhFrame {
 public:
  // Both must outlive it.
  EhFrame(Placed block, std::vector<std::string>& problems) : block_(block), problems_(problems) {}

  void for_each(const std::function<void(const EhEntry&)>& take);
  // An entry cannot be read.
  void report(size_t offset);
  [[nodiscard]] const Placed& block() const { return block_; }

 private:
  struct Record;
  std::optional<Record> read_record(size_t at);
  const EhCommon* find_common(const Record& entry);
  std::optional<EhCommon> read_common(const Record& record);
  bool read_augmentation(std::string_view augmentation, ByteReader& reader, const Record& record,
                         EhCommon& common);
  std::optional<EhEntry> read_entry(const Record& record);

  Placed block_;
  std::vector<std::string>& problems_;
  std::unordered_map<size_t, std::optional<EhCommon>> commons_;
  bool reported_ = false;
};

// .eh_frame of a file; empty when it has none.
Placed find_eh_frame(const ElfFile& file, FileMemory& memory);

}  // namespace clew::target
