// SPDX-License-Identifier: Apache-2.0
#include "target/symbols.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <lzma.h>

namespace clew::target {

namespace {

constexpr size_t kMiniDebugInfoMaxBytes = size_t{512} << 20;

std::string_view name_at(std::span<const uint8_t> strings, uint32_t offset) {
  if (offset >= strings.size()) return {};
  const auto* begin = reinterpret_cast<const char*>(strings.data()) + offset;
  const std::string_view name(begin, strnlen(begin, strings.size() - offset));
  if (offset + name.size() == strings.size()) return {};  // Not terminated.
  return name;
}

// .gnu.version has a number for each dynamic symbol; the highest bit hides it from new programs.
bool is_hidden(std::span<const uint8_t> versions, size_t symbol) {
  if (versions.size() / 2 <= symbol) return false;
  return (versions[2 * symbol + 1] & 0x80) != 0;
}

// The tables are read as they are: their layout is that of Elf64_Sym, and there may be millions.
class SymbolReader {
 public:
  SymbolReader(const ImageTables& tables, std::span<const uint8_t> strings, FunctionOrigin origin)
      : tables_(tables), strings_(strings), origin_(origin) {}

  void use_versions(std::span<const uint8_t> versions) { versions_ = versions; }

  void read(std::span<const uint8_t> bytes, SymbolList& list) {
    uint32_t source_file = ++list.source_files;
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= bytes.size(); at += sizeof(Elf64_Sym)) {
      index_ = at / sizeof(Elf64_Sym);
      Elf64_Sym symbol;
      std::memcpy(&symbol, bytes.data() + at, sizeof(symbol));
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FILE) {
        source_file = ++list.source_files;
      } else {
        add(symbol, source_file, list);
      }
    }
  }

 private:
  void add(const Elf64_Sym& symbol, uint32_t source_file, SymbolList& list) {
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    const bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
    if (!is_function || symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) return;
    if (!is_code(symbol.st_value)) return;
    const std::string_view versioned = name_at(strings_, symbol.st_name);
    const size_t version = versioned.find('@');
    const std::string_view name = versioned.substr(0, version);
    if (name.empty()) return;
    const bool has_old_version =
        version != std::string_view::npos && !versioned.substr(version).starts_with("@@");
    const bool is_local = ELF64_ST_BIND(symbol.st_info) == STB_LOCAL;
    list.symbols.push_back({.name = name,
                            .address = symbol.st_value,
                            .size_bytes = symbol.st_size,
                            .source_file = is_local ? source_file : 0,
                            .origin = origin_,
                            .is_local = is_local,
                            .is_weak = ELF64_ST_BIND(symbol.st_info) == STB_WEAK,
                            .is_ifunc = type == STT_GNU_IFUNC,
                            .is_old_version = has_old_version || is_hidden(versions_, index_),
                            .is_untyped = type == STT_NOTYPE});
  }

  // Neighbours in a symbol table are mostly in one section.
  bool is_code(uint64_t address) {
    if (section_ != nullptr && address - section_->address < section_->size_bytes) return true;
    const SectionRecord* section = tables_.code_section_at(address);
    if (section != nullptr) section_ = section;
    return section != nullptr;
  }

  const ImageTables& tables_;
  std::span<const uint8_t> strings_;
  std::span<const uint8_t> versions_;
  FunctionOrigin origin_;
  size_t index_ = 0;
  const SectionRecord* section_ = nullptr;
};

bool grow(std::vector<uint8_t>& bytes) {
  if (bytes.size() >= kMiniDebugInfoMaxBytes) return false;
  bytes.resize(std::min(2 * bytes.size(), kMiniDebugInfoMaxBytes));
  return true;
}

Expected<Buffer> decompress_xz(std::span<const uint8_t> compressed) {
  constexpr uint64_t kMemoryMaxBytes = uint64_t{256} << 20;
  std::vector<uint8_t> out(std::max<size_t>(4 * compressed.size(), 4096));
  uint64_t memory_limit = kMemoryMaxBytes;
  size_t in_at = 0;
  size_t out_at = 0;
  for (;;) {
    in_at = 0;
    out_at = 0;
    const lzma_ret result =
        lzma_stream_buffer_decode(&memory_limit, 0, nullptr, compressed.data(), &in_at,
                                  compressed.size(), out.data(), &out_at, out.size());
    if (result == LZMA_OK) break;
    const bool again = result == LZMA_BUF_ERROR && out.size() < kMiniDebugInfoMaxBytes;
    if (!again || !grow(out)) {
      return fail(ErrorCode::Io, ".gnu_debugdata does not decompress");
    }
  }
  Buffer result(out_at);
  if (out_at != 0) std::memcpy(result.data(), out.data(), out_at);
  return result;
}

}  // namespace

Expected<void> add_symbols(const ElfFile& file, const ElfSection& symtab, FunctionOrigin origin,
                           const ImageTables& tables, SymbolList& list) {
  if (symtab.header.sh_link >= file.sections().size()) {
    return fail(ErrorCode::Io, fmt::format("{} has no string table", symtab.name));
  }
  Buffer strings = CLEW_TRY(file.read(file.sections()[symtab.header.sh_link]));
  const Buffer symbols = CLEW_TRY(file.read(symtab));
  SymbolReader reader(tables, strings.view(), origin);
  const bool is_dynamic = symtab.header.sh_type == SHT_DYNSYM;
  const ElfSection* version_section =
      is_dynamic ? file.find_section_of_type(SHT_GNU_versym) : nullptr;
  Buffer versions;
  if (version_section != nullptr) versions = CLEW_TRY(file.read(*version_section));
  reader.use_versions(versions.view());
  reader.read(symbols.view(), list);
  list.string_tables.push_back(std::move(strings));
  return {};
}

Expected<void> add_dynamic_symbols(const ElfFile& file, const DynamicTable& dynamic,
                                   const ImageTables& tables, SymbolList& list) {
  const ElfSection* section = file.find_section_of_type(SHT_DYNSYM);
  if (section != nullptr) {
    return add_symbols(file, *section, FunctionOrigin::DynamicSymbols, tables, list);
  }
  if (!dynamic.is_there() || dynamic.symbol_table == 0) return {};
  const uint64_t count = count_dynamic_symbols(file, dynamic);
  Buffer strings = CLEW_TRY(file.read_at_address(dynamic.string_table, dynamic.string_table_bytes));
  const Buffer symbols =
      CLEW_TRY(file.read_at_address(dynamic.symbol_table, count * sizeof(Elf64_Sym)));
  SymbolReader(tables, strings.view(), FunctionOrigin::DynamicSymbols).read(symbols.view(), list);
  list.string_tables.push_back(std::move(strings));
  return {};
}

Expected<void> add_mini_debug_info(const ElfFile& file, const ImageTables& tables,
                                   SymbolList& list) {
  const ElfSection* section = file.find_section(".gnu_debugdata");
  if (section == nullptr) return {};
  const Buffer compressed = CLEW_TRY(file.read(*section));
  Buffer decompressed = CLEW_TRY(decompress_xz(compressed.view()));
  const ElfFile inner = CLEW_TRY(ElfFile::from_buffer(std::move(decompressed)));
  const ElfSection* symtab = inner.find_section_of_type(SHT_SYMTAB);
  if (symtab == nullptr) return fail(ErrorCode::Io, ".gnu_debugdata has no symbols");
  return add_symbols(inner, *symtab, FunctionOrigin::MiniDebugInfo, tables, list);
}

}  // namespace clew::target
