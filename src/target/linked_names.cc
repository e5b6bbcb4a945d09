// SPDX-License-Identifier: Apache-2.0
#include "target/linked_names.h"

#include <algorithm>
#include <utility>

#include "target/dynamic.h"
#include "target/elf_file.h"
#include "target/file_memory.h"
#include "target/image_tables.h"
#include "target/relocations.h"
#include "target/symbols.h"

namespace clew::target {

namespace {

// One of each name.
void merge(std::vector<ExportedFunction>& all) {
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  size_t kept = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (kept > 0 && all[kept - 1].name == all[i].name) {
      if (all[kept - 1].address != all[i].address) all[kept - 1].address = 0;
    } else {
      if (kept != i) all[kept] = std::move(all[i]);
      ++kept;
    }
  }
  all.resize(kept);
}

}  // namespace

Expected<LinkedNames> linked_names_of(const ElfFile& file) {
  LinkedNames names;
  const DynamicTable dynamic = read_dynamic_table(file);
  ImageTables tables;
  read_section_records(file, tables);
  SymbolList list;
  CLEW_TRY(add_dynamic_symbols(file, dynamic, tables, list));
  names.exports.reserve(list.symbols.size());
  for (const RawSymbol& symbol : list.symbols) {
    if (symbol.is_local) continue;
    const bool is_sure = !symbol.is_ifunc && !symbol.is_untyped;
    names.exports.push_back({std::string(symbol.name), is_sure ? symbol.address : 0});
  }
  merge(names.exports);
  names.imports = CLEW_TRY(find_import_slots(file, dynamic, std::nullopt));
  return names;
}

Expected<LinkedNames> read_linked_names(const std::string& path) {
  return linked_names_of(CLEW_TRY(ElfFile::open(path)));
}

}  // namespace clew::target
