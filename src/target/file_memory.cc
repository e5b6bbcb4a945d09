// SPDX-License-Identifier: Apache-2.0
#include "target/file_memory.h"

#include <algorithm>

#include <fmt/format.h>

namespace clew::target {

namespace {

bool is_sane(const SectionRecord& record, const ElfFile& file) {
  const bool in_file = record.file_size_bytes == 0 ||
                       (record.file_offset <= file.size_bytes() &&
                        record.file_size_bytes <= file.size_bytes() - record.file_offset);
  return in_file && record.size_bytes != 0 && record.address + record.size_bytes > record.address;
}

SectionRecord from_header(const ElfSection& section, ImageTables& tables) {
  const Elf64_Shdr& header = section.header;
  const bool in_file = header.sh_type != SHT_NOBITS;
  const bool executable = (header.sh_flags & SHF_EXECINSTR) != 0;
  const bool is_plt = section.name.starts_with(".plt") || section.name == ".iplt";
  return {.name = tables.add_text(section.name),
          .address = header.sh_addr,
          .size_bytes = header.sh_size,
          .file_offset = in_file ? header.sh_offset : 0,
          .file_size_bytes = in_file ? header.sh_size : 0,
          .executable = executable,
          .writable = (header.sh_flags & SHF_WRITE) != 0,
          .is_plt = executable && is_plt};
}

SectionRecord from_segment(const Elf64_Phdr& segment, size_t index, ImageTables& tables) {
  return {.name = tables.add_text(fmt::format("LOAD{}", index)),
          .address = segment.p_vaddr,
          .size_bytes = segment.p_memsz,
          .file_offset = segment.p_offset,
          .file_size_bytes = std::min(segment.p_filesz, segment.p_memsz),
          .executable = (segment.p_flags & PF_X) != 0,
          .writable = (segment.p_flags & PF_W) != 0};
}

// .tbss takes no room where it stands, so it may lie over its neighbour.
bool is_loaded(const Elf64_Shdr& header) {
  const bool is_tbss = header.sh_type == SHT_NOBITS && (header.sh_flags & SHF_TLS) != 0;
  return (header.sh_flags & SHF_ALLOC) != 0 && header.sh_type != SHT_NULL && !is_tbss;
}

}  // namespace

const SectionRecord* ImageTables::code_section_at(uint64_t address) const {
  const auto next = std::upper_bound(
      sections.begin(), sections.end(), address,
      [](uint64_t at, const SectionRecord& section) { return at < section.address; });
  if (next == sections.begin()) return nullptr;
  const SectionRecord& section = *(next - 1);
  const bool is_code = section.executable != 0 && section.is_plt == 0;
  return is_code && address - section.address < section.size_bytes ? &section : nullptr;
}

void read_section_records(const ElfFile& file, ImageTables& tables) {
  std::vector<SectionRecord> records;
  for (const ElfSection& section : file.sections()) {
    if (is_loaded(section.header)) records.push_back(from_header(section, tables));
  }
  const bool has_sections = !records.empty();
  for (const Elf64_Phdr& segment : file.segments()) {
    if (has_sections || segment.p_type != PT_LOAD) continue;
    records.push_back(from_segment(segment, records.size(), tables));
  }
  std::stable_sort(records.begin(), records.end(),
                   [](const auto& a, const auto& b) { return a.address < b.address; });
  uint64_t end = 0;
  for (const SectionRecord& record : records) {
    // Sections that overlap would make an address ambiguous: the first one stays.
    const bool usable = is_sane(record, file) && record.address >= end;
    if (usable) {
      end = record.address + record.size_bytes;
      tables.sections.push_back(record);
    } else if (record.size_bytes != 0) {
      tables.problems.push_back(
          fmt::format("the section {} is broken or overlaps another", tables.view(record.name)));
    }
  }
}

std::span<const uint8_t> FileMemory::from(uint64_t address) {
  const auto next = std::upper_bound(
      sections_.begin(), sections_.end(), address,
      [](uint64_t at, const SectionRecord& section) { return at < section.address; });
  if (next == sections_.begin()) return {};
  const SectionRecord& section = *(next - 1);
  const uint64_t within = address - section.address;
  if (within >= section.file_size_bytes) return {};
  Part& part = parts_[static_cast<size_t>(next - sections_.begin()) - 1];
  if (!part.is_read) {
    part.is_read = true;
    auto bytes = file_.read(section.file_offset, section.file_size_bytes);
    if (bytes) part.bytes = std::move(*bytes);
  }
  const auto bytes = part.bytes.view();
  return within < bytes.size() ? bytes.subspan(within) : std::span<const uint8_t>();
}

}  // namespace clew::target
