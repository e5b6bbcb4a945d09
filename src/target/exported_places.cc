// SPDX-License-Identifier: Apache-2.0
#include "target/exported_places.h"

#include <cstring>
#include <unordered_map>

#include "target/dynamic.h"
#include "target/elf_file.h"

namespace clew::target {

namespace {

std::string_view exported_name(std::span<const uint8_t> strings, uint32_t offset) {
  if (offset >= strings.size()) return {};
  const auto* const begin = reinterpret_cast<const char*>(strings.data()) + offset;
  return {begin, strnlen(begin, strings.size() - offset)};
}

bool has_place(const Elf64_Sym& symbol) {
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  const bool is_global = ELF64_ST_BIND(symbol.st_info) != STB_LOCAL;
  return is_global && (type == STT_FUNC || type == STT_OBJECT) && symbol.st_shndx != SHN_UNDEF &&
         symbol.st_shndx != SHN_ABS;
}

}  // namespace

Expected<std::vector<std::optional<uint64_t>>> read_exported_places(
    const std::string& path, std::span<const std::string_view> names) {
  std::vector<std::optional<uint64_t>> places(names.size());
  const ElfFile file = CLEW_TRY(ElfFile::open(path));
  const DynamicTable dynamic = read_dynamic_table(file);
  if (!dynamic.is_there() || dynamic.symbol_table == 0) return places;
  std::unordered_map<std::string_view, size_t> wanted;
  for (size_t i = 0; i < names.size(); ++i)
    wanted.emplace(names[i], i);
  const uint64_t count = count_dynamic_symbols(file, dynamic);
  const Buffer strings =
      CLEW_TRY(file.read_at_address(dynamic.string_table, dynamic.string_table_bytes));
  const Buffer symbols =
      CLEW_TRY(file.read_at_address(dynamic.symbol_table, count * sizeof(Elf64_Sym)));
  for (size_t i = 0; i < count; ++i) {
    Elf64_Sym symbol;
    std::memcpy(&symbol, symbols.view().data() + i * sizeof(symbol), sizeof(symbol));
    if (!has_place(symbol)) continue;
    const auto found = wanted.find(exported_name(strings.view(), symbol.st_name));
    if (found != wanted.end()) places[found->second] = symbol.st_value;
  }
  return places;
}

}  // namespace clew::target
