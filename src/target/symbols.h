// SPDX-License-Identifier: Apache-2.0
// The function symbols of an ELF file, as they stand in its symbol tables: not merged, not named
// for users. functions.h makes functions of them. Internal to target/.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "target/dynamic.h"
#include "target/elf_file.h"
#include "target/image_tables.h"

namespace clew::target {

struct RawSymbol {
  std::string_view name;  // Without a version ("@GLIBC_2.2.5").
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint32_t source_file = 0;  // Local symbols of one source file have the same number; 0 = global.
  FunctionOrigin origin = FunctionOrigin::SymbolTable;
  bool is_local = false;
  bool is_weak = false;
  bool is_ifunc = false;
  bool is_old_version = false;  // Not the default version of its name: only old programs get it.
  bool is_untyped = false;  // A label of hand-written assembly: a function only if an FDE says so.
};

// Function symbols in code sections, and the string tables that their names lie in.
struct SymbolList {
  std::vector<RawSymbol> symbols;
  std::vector<Buffer> string_tables;
  uint32_t source_files = 0;
};

// Adds the symbols of `symtab` (SHT_SYMTAB or SHT_DYNSYM with its sh_link) of `file` that lie in
// the code sections of `tables`.
Expected<void> add_symbols(const ElfFile& file, const ElfSection& symtab, FunctionOrigin origin,
                           const ImageTables& tables, SymbolList& list);

// Adds .dynsym, by section if there is one and else by the dynamic table. Nothing for a file that
// is linked statically.
Expected<void> add_dynamic_symbols(const ElfFile& file, const DynamicTable& dynamic,
                                   const ImageTables& tables, SymbolList& list);

// Adds the symbols of .gnu_debugdata, an ELF file in xz. Nothing when there is none.
Expected<void> add_mini_debug_info(const ElfFile& file, const ImageTables& tables,
                                   SymbolList& list);

}  // namespace clew::target
