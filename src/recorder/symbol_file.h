// SPDX-License-Identifier: Apache-2.0
// What a debugger reads of code that no file has: an ELF file without code, for one place in
// memory, with names, call frame information, and lines. All addresses are those of a process.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace clew::recorder {

struct NamedCode {
  std::string name;  // As a linker has it.
  uint64_t address = 0;
  uint64_t size_bytes = 0;
};

// From this address on, up to the next one.
struct LineAt {
  uint64_t address = 0;
  uint32_t file = 0;  // In SymbolFile::files.
  uint32_t line = 0;  // 0: not known.
};

struct SymbolFile {
  std::string name;  // Of the module.
  uint64_t code = 0;
  uint64_t code_bytes = 0;
  uint64_t frames = 0;  // Where these are: .eh_frame.
  std::span<const uint8_t> frame_bytes;
  std::vector<NamedCode> functions;
  std::vector<std::string> files = {};
  std::vector<LineAt> lines = {};  // By address.
};

std::vector<uint8_t> symbol_file_bytes(const SymbolFile& file);

}  // namespace clew::recorder
