// SPDX-License-Identifier: Apache-2.0
#include "target/exported_code.h"

#include <algorithm>

#include "target/dynamic.h"
#include "target/elf_file.h"
#include "target/file_memory.h"
#include "target/image_tables.h"
#include "target/symbols.h"

namespace clew::target {

Expected<std::optional<ExportedCode>> read_exported_code(const std::string& path,
                                                         std::string_view name, uint64_t size_max) {
  const ElfFile file = CLEW_TRY(ElfFile::open(path));
  ImageTables tables;
  read_section_records(file, tables);
  SymbolList list;
  CLEW_TRY(add_dynamic_symbols(file, read_dynamic_table(file), tables, list));
  const auto found =
      std::find_if(list.symbols.begin(), list.symbols.end(), [&](const RawSymbol& symbol) {
        return symbol.name == name && !symbol.is_local && !symbol.is_old_version &&
               !symbol.is_ifunc && !symbol.is_untyped;
      });
  if (found == list.symbols.end()) return std::optional<ExportedCode>();
  const uint64_t size = std::min(found->size_bytes, size_max);
  const Buffer bytes = CLEW_TRY(file.read_at_address(found->address, size));
  const auto code = bytes.view();
  return std::optional(ExportedCode{found->address, {code.begin(), code.end()}});
}

}  // namespace clew::target
