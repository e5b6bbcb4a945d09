// SPDX-License-Identifier: Apache-2.0
// read_tables: from an ELF file to ImageTables, stage by stage.
#include <fmt/format.h>

#include "target/debug_file.h"
#include "target/dynamic.h"
#include "target/functions.h"
#include "target/image_tables.h"
#include "target/relocations.h"
#include "target/symbols.h"
#include "target/unwind.h"

namespace clew::target {

namespace {

void note(Expected<void> result, ImageTables& tables) {
  if (!result) tables.problems.push_back(result.error().message);
}

// The best source of full symbols only: each next one holds what the one before would.
void add_full_symbols(const ElfFile& file, const std::string& path, const ReadOptions& options,
                      ImageTables& tables, SymbolList& list) {
  if (const ElfSection* symtab = file.find_section_of_type(SHT_SYMTAB)) {
    return note(add_symbols(file, *symtab, FunctionOrigin::SymbolTable, tables, list), tables);
  }
  auto debug = find_debug_file(file, path, options.debug_directory);
  if (!debug) return note(add_mini_debug_info(file, tables, list), tables);
  if (file.log() != nullptr) {
    if (auto logged = debug->file.log_to(*file.log(), 1); !logged) return note(logged, tables);
  }
  if (const ElfSection* symtab = debug->file.find_section_of_type(SHT_SYMTAB)) {
    tables.debug_file = tables.add_text(debug->path);
    return note(add_symbols(debug->file, *symtab, FunctionOrigin::DebugFile, tables, list), tables);
  }
  note(add_mini_debug_info(file, tables, list), tables);
}

}  // namespace

Expected<ImageTables> read_tables(const ElfFile& file, const std::string& path,
                                  const ReadOptions& options) {
  ImageTables tables;
  tables.problems = file.problems();
  tables.is_position_independent = file.header().e_type == ET_DYN;
  tables.entry_address = file.header().e_entry;
  tables.build_id = tables.add_text(file.build_id());
  read_section_records(file, tables);
  const DynamicTable dynamic = read_dynamic_table(file);
  tables.soname = tables.add_text(read_soname(file, dynamic));

  const std::vector<SectionRecord> sections = tables.sections;
  FileMemory memory(file, sections);
  read_unwind_tables(file, memory, tables);
  read_relocations(file, dynamic, memory, tables);

  SymbolList symbols;
  add_full_symbols(file, path, options, tables, symbols);
  note(add_dynamic_symbols(file, dynamic, tables, symbols), tables);
  make_functions(std::move(symbols), options.name, tables);
  return tables;
}

}  // namespace clew::target
