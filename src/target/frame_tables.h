// SPDX-License-Identifier: Apache-2.0
// What an unwinder reads of a file, whole, for who writes it anew for code that was moved: call
// frame instructions as they are, and exception tables as lists. LSB core specification, chapter
// 10; Itanium C++ ABI exception handling, level II.
//
// The file is foreign: entries that cannot be read are left out and named in `problems`, tables
// that cannot be read or are of a form that compilers do not write are marked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace clew::target {

// A place in a file's memory, or a word there that the loader fills with the address meant.
struct FramePointer {
  uint64_t address = 0;
  bool is_indirect = false;
  bool operator==(const FramePointer&) const = default;
};

// Calls in [begin, end) land there when an exception comes out of them; those in no site let none
// pass.
struct CallSite {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t landing_pad = 0;  // 0: none, it goes on to the caller.
  uint64_t action = 0;       // 0: none; else 1 + its place in `actions`.
};

// How its types are written, which is how they can be written anew.
enum class TypeForm : uint8_t {
  None,
  Relative,    // 4 bytes, a distance from themselves.
  Absolute32,  // An address that does not move: in programs that are loaded where they were linked.
  Absolute64,
};

struct ExceptionTable {
  bool is_understood = false;  // Else nothing else is known.
  std::vector<CallSite> sites = {};
  std::vector<uint8_t> actions = {};  // As they are: places in it are relative to it.
  TypeForm type_form = TypeForm::None;
  std::vector<FramePointer> types =
      {};  // By filter, which begin at 1. Address 0: whatever is thrown.
  std::vector<uint8_t> specifications = {};  // As they are: what filters below 0 name.
};

// What entries share (a CIE).
struct FrameCommon {
  bool has_personality = false;
  std::optional<FramePointer> personality = std::nullopt;  // Nothing when it cannot be read.
  bool is_signal_frame = false;
  uint64_t code_alignment = 0;
  int64_t data_alignment = 0;
  uint64_t return_column = 0;
  std::vector<uint8_t> instructions = {};
};

inline constexpr uint32_t kNoExceptionTable = UINT32_MAX;

// An entry about a stretch of code (an FDE).
struct FrameEntry {
  uint32_t common = 0;
  uint32_t exceptions = kNoExceptionTable;
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  std::vector<uint8_t> instructions = {};
  [[nodiscard]] uint64_t end() const { return address + size_bytes; }
};

struct FrameTables {
  std::vector<FrameCommon> commons;
  std::vector<FrameEntry> entries;  // By address. They do not overlap: of those that do the first.
  std::vector<ExceptionTable> exceptions;
  std::vector<std::string> problems;
};

class ElfFile;

// Errors: NotFound, Io, Refused, as ModuleImage::read. A file without them has none.
Expected<FrameTables> read_frame_tables(const std::string& path);
Expected<FrameTables> frame_tables_of(const ElfFile& file);
// The same of an image in memory.
Expected<FrameTables> read_frame_tables(std::span<const uint8_t> image);

}  // namespace clew::target
