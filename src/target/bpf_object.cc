// SPDX-License-Identifier: Apache-2.0
// ELF-64 as the System V gABI has it (chapter 4); .BTF.ext as the kernel's
// Documentation/bpf/btf.rst, section 4.2.
#include "target/bpf_object.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "target/byte_reader.h"

namespace clew::target {
namespace {

constexpr size_t kSectionsMax = 4096;
constexpr size_t kSymbolsMax = 65536;
constexpr uint32_t kLineShift = 10;  // btf.rst: line_col is line << 10 | column.
constexpr uint16_t kBtfMagic = 0xEB9F;

tl::unexpected<Error> refuse(const std::string& name, std::string_view why) {
  return fail(ErrorCode::Refused, fmt::format("{}: {}", name, why));
}

std::string_view text_at(std::span<const uint8_t> texts, uint32_t offset) {
  ByteReader reader(texts, offset);
  return reader.failed() ? std::string_view() : reader.read_string();
}

}  // namespace

Expected<BpfObject> BpfObject::open(std::span<const uint8_t> bytes, std::string name) {
  BpfObject object(std::move(name));
  CLEW_TRY(object.read_sections(bytes));
  CLEW_TRY(object.read_symbols());
  CLEW_TRY(object.read_relocations());
  CLEW_TRY(object.read_types());
  const BpfSection* lines = object.find(".BTF.ext");
  if (lines != nullptr && object.types_) object.read_lines(lines->bytes);
  return object;
}

Expected<void> BpfObject::read_sections(std::span<const uint8_t> bytes) {
  const auto header = ByteReader(bytes).read<Elf64_Ehdr>();
  const bool is_elf = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                      header.e_ident[EI_CLASS] == ELFCLASS64 &&
                      header.e_ident[EI_DATA] == ELFDATA2LSB;
  if (!is_elf || header.e_machine != EM_BPF || header.e_type != ET_REL)
    return refuse(name_, "not an object file for BPF (clang -target bpf -O2 -g -c)");
  if (header.e_shnum > kSectionsMax || header.e_shstrndx >= header.e_shnum)
    return refuse(name_, "a broken table of sections");
  ByteReader table(bytes, header.e_shoff);
  for (uint32_t i = 0; i < header.e_shnum; ++i) {
    BpfSection section;
    section.header = table.read<Elf64_Shdr>();
    ByteReader content(bytes, section.header.sh_offset);
    if (section.header.sh_type != SHT_NOBITS && section.header.sh_type != SHT_NULL)
      section.bytes = content.read_bytes(section.header.sh_size);
    if (table.failed() || (section.header.sh_type != SHT_NOBITS && content.failed()))
      return refuse(name_, fmt::format("section {} is not in the file", i));
    sections_.push_back(section);
  }
  const std::span<const uint8_t> names = sections_[header.e_shstrndx].bytes;
  for (BpfSection& section : sections_)
    section.name = text_at(names, section.header.sh_name);
  return {};
}

const BpfSection* BpfObject::find(std::string_view name) const {
  const auto found = std::find_if(sections_.begin(), sections_.end(),
                                  [name](const BpfSection& one) { return one.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

Expected<void> BpfObject::read_symbols() {
  const auto table = std::find_if(sections_.begin(), sections_.end(), [](const BpfSection& one) {
    return one.header.sh_type == SHT_SYMTAB;
  });
  if (table == sections_.end() || table->header.sh_link >= sections_.size())
    return refuse(name_, "no table of symbols");
  const std::span<const uint8_t> names = sections_[table->header.sh_link].bytes;
  ByteReader reader(table->bytes);
  while (!reader.at_end()) {
    const auto raw = reader.read<Elf64_Sym>();
    if (reader.failed() || symbols_.size() == kSymbolsMax)
      return refuse(name_, "a broken table of symbols");
    symbols_.push_back({.name = text_at(names, raw.st_name),
                        .section = raw.st_shndx,
                        .value = raw.st_value,
                        .size_bytes = raw.st_size,
                        .is_function = ELF64_ST_TYPE(raw.st_info) == STT_FUNC,
                        .is_section = ELF64_ST_TYPE(raw.st_info) == STT_SECTION,
                        .is_global = ELF64_ST_BIND(raw.st_info) != STB_LOCAL});
  }
  return {};
}

Expected<void> BpfObject::read_relocations() {
  for (const BpfSection& section : sections_) {
    if (section.header.sh_type != SHT_REL && section.header.sh_type != SHT_RELA) continue;
    if (section.header.sh_info >= sections_.size())
      return refuse(name_, "relocations of no section");
    const BpfSection& changed = sections_[section.header.sh_info];
    if (!changed.is_code() && !changed.is_data()) continue;
    if (section.header.sh_type == SHT_RELA)
      return refuse(name_, "relocations of a form that clang does not make");
    ByteReader reader(section.bytes);
    while (!reader.at_end()) {
      const auto raw = reader.read<Elf64_Rel>();
      const auto symbol = static_cast<uint32_t>(ELF64_R_SYM(raw.r_info));
      if (reader.failed() || symbol >= symbols_.size() || raw.r_offset >= changed.header.sh_size) {
        return refuse(name_, "a broken relocation");
      }
      relocations_.push_back({.section = section.header.sh_info,
                              .offset = raw.r_offset,
                              .type = static_cast<uint32_t>(ELF64_R_TYPE(raw.r_info)),
                              .symbol = symbol});
    }
  }
  return {};
}

Expected<void> BpfObject::read_types() {
  const BpfSection* types = find(".BTF");
  if (types == nullptr) return {};
  Expected<Btf> read = Btf::of_section(types->bytes);
  if (!read) return refuse(name_, read.error().message);
  types_ = std::move(*read);
  return {};
}

// What is broken here costs only line numbers.
void BpfObject::read_lines(std::span<const uint8_t> bytes) {
  ByteReader head(bytes);
  const auto magic = head.read<uint16_t>();
  head.skip(2);
  const auto header_bytes = head.read<uint32_t>();
  head.skip(8);  // The functions.
  const auto lines_offset = head.read<uint32_t>();
  const auto lines_bytes = head.read<uint32_t>();
  if (head.failed() || magic != kBtfMagic) return;
  ByteReader area(bytes, size_t{header_bytes} + lines_offset);
  ByteReader reader(area.read_bytes(lines_bytes));
  const auto record_bytes = reader.read<uint32_t>();
  while (!reader.at_end() && record_bytes >= 16) {
    const std::string_view section = types_->text_at(reader.read<uint32_t>());
    const auto count = reader.read<uint32_t>();
    for (uint32_t i = 0; i < count && !reader.failed(); ++i) {
      const auto offset = reader.read<uint32_t>();
      const auto file_name = reader.read<uint32_t>();
      reader.skip(4);  // The text of the line.
      const auto line = reader.read<uint32_t>() >> kLineShift;
      reader.skip(record_bytes - 16);
      if (!reader.failed()) lines_[section][offset] = {file_name, line};
    }
  }
}

std::string BpfObject::place_of(uint32_t section, uint64_t offset) const {
  const auto lines = lines_.find(sections_[section].name);
  if (lines == lines_.end()) return name_;
  auto found = lines->second.upper_bound(offset);
  if (found == lines->second.begin()) return name_;
  --found;
  return fmt::format("{}:{}", types_->text_at(found->second.file_name), found->second.line);
}

}  // namespace clew::target
