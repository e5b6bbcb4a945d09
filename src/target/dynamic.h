// SPDX-License-Identifier: Apache-2.0
// The dynamic table of an ELF file: what its loader is told. Used instead of section headers where
// both say the same, since this is what decides at run time. Internal to target/.
#pragma once

#include <cstdint>
#include <string>

#include "target/elf_file.h"

namespace clew::target {

// Addresses and sizes as in the table; 0 = not there.
struct DynamicTable {
  uint64_t string_table = 0;
  uint64_t string_table_bytes = 0;
  uint64_t symbol_table = 0;
  uint64_t hash = 0;
  uint64_t gnu_hash = 0;
  uint64_t rela = 0;
  uint64_t rela_bytes = 0;
  uint64_t plt_rela = 0;
  uint64_t plt_rela_bytes = 0;
  uint64_t relr = 0;
  uint64_t relr_bytes = 0;
  uint64_t soname_offset = 0;  // In the string table.

  [[nodiscard]] bool is_there() const { return string_table != 0; }
};

DynamicTable read_dynamic_table(const ElfFile& file);

std::string read_soname(const ElfFile& file, const DynamicTable& dynamic);

// The number of entries of .dynsym, which only the hash tables tell. 0 when they are not usable.
uint64_t count_dynamic_symbols(const ElfFile& file, const DynamicTable& dynamic);

}  // namespace clew::target
