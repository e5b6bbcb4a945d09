// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf_file.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_text.h"
#include "target/debug_file.h"
#include "target/elf_file.h"

namespace clew::target {

namespace {

constexpr size_t kUnitsMax = 1'000'000;
constexpr size_t kUnitRangesMax = 1'000'000;

bool has_dwarf(const ElfFile& file) {
  for (const std::string_view name : {".debug_info", ".zdebug_info"}) {
    const ElfSection* section = file.find_section(name);
    if (section != nullptr && section->header.sh_type != SHT_NOBITS) return true;
  }
  return false;
}

Expected<std::string> find_path(const ModuleImage& image, const ReadOptions& options) {
  const ElfFile file = CLEW_TRY(ElfFile::open(image.path()));
  if (has_dwarf(file)) return image.path();
  const auto debug = find_debug_file(file, image.path(), options.debug_directory);
  if (debug && has_dwarf(debug->file)) return debug->path;
  return fail(ErrorCode::NotFound, missing_debug_file_advice(image.name(), image.build_id()));
}

// What is seen through /proc belongs to a container, whose root may be anybody.
bool may_be_truncated(const std::string& path, const struct stat& status) {
  const bool is_ours = status.st_uid == 0 || status.st_uid == geteuid();
  return !is_ours || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 || path.starts_with("/proc/");
}

}  // namespace

Expected<DwarfFile> DwarfFile::find(const ModuleImage& image, const ReadOptions& options) {
  DwarfFile result;
  result.path_ = CLEW_TRY(find_path(image, options));
  result.file_ = FileDescriptor(open(result.path_.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!result.file_.valid() || fstat(result.file_.get(), &status) != 0) {
    return fail(ErrorCode::Io, fmt::format("cannot open {}: {}", result.path_, error_text(errno)));
  }
  result.size_bytes_ = static_cast<uint64_t>(status.st_size);
  const bool is_large = result.size_bytes_ > kCopyMaxBytes;
  result.is_mapped_ = is_large && !may_be_truncated(result.path_, status);
  if (!result.is_mapped_ && result.size_bytes_ > kForeignMaxBytes) {
    return fail(ErrorCode::Limit,
                fmt::format("{} is larger than {} MiB, and others could truncate it meanwhile",
                            result.path_, kForeignMaxBytes >> 20));
  }
  return result;
}

bool DwarfFile::begin() {
  elf_version(EV_CURRENT);
  const Elf_Cmd command = is_mapped_ ? ELF_C_READ_MMAP : ELF_C_READ;
  elf_.reset(elf_begin(file_.get(), command, nullptr));
  if (!elf_) return false;
  dwarf_.reset(dwarf_begin_elf(elf_.get(), DWARF_C_READ, nullptr));
  return dwarf_ != nullptr;
}

std::span<DwarfUnit> DwarfFile::units() {
  if (!is_read_) {
    is_read_ = true;
    if (begin()) read_units();
  }
  return units_;
}

void DwarfFile::read_units() {
  Dwarf_CU* unit = nullptr;
  Dwarf_CU* next = nullptr;
  Dwarf_Half version = 0;
  uint8_t kind = 0;
  Dwarf_Die die;
  Dwarf_Die skeleton;
  while (units_.size() < kUnitsMax &&
         dwarf_get_units(dwarf_.get(), unit, &next, &version, &kind, &die, &skeleton) == 0) {
    unit = next;
    if (kind != DW_UT_compile && kind != DW_UT_partial && kind != DW_UT_skeleton) continue;
    // The split unit of a skeleton has the entries, when its file is there.
    const bool is_split = kind == DW_UT_skeleton && skeleton.addr != nullptr;
    Dwarf_Die top = is_split ? skeleton : die;
    units_.push_back({.die = top, .ranges = die_ranges(die)});
    for (const AddressRange& range : units_.back().ranges) {
      unit_ranges_.push_back({range, units_.size() - 1});
    }
  }
  std::sort(unit_ranges_.begin(), unit_ranges_.end(), [](const UnitRange& a, const UnitRange& b) {
    return a.range.address < b.range.address;
  });
}

DwarfUnit* DwarfFile::unit_at(uint64_t address) {
  (void)units();
  const auto next =
      std::upper_bound(unit_ranges_.begin(), unit_ranges_.end(), address,
                       [](uint64_t at, const UnitRange& unit) { return at < unit.range.address; });
  if (next == unit_ranges_.begin() || !(next - 1)->range.contains(address)) return nullptr;
  return &units_[(next - 1)->unit];
}

// libdw has decompressed the sections in place when it opened the file.
LineSections DwarfFile::line_sections() {
  LineSections sections;
  size_t names_index = 0;
  if (!elf_ || elf_getshdrstrndx(elf_.get(), &names_index) != 0) return sections;
  for (Elf_Scn* section = elf_nextscn(elf_.get(), nullptr); section != nullptr;
       section = elf_nextscn(elf_.get(), section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* name = elf_strptr(elf_.get(), names_index, header.sh_name);
    if (name == nullptr) continue;
    const std::string_view text = name;
    std::span<const uint8_t>* wanted = text == ".debug_line"       ? &sections.line
                                       : text == ".debug_line_str" ? &sections.line_string
                                       : text == ".debug_str"      ? &sections.string
                                                                   : nullptr;
    const Elf_Data* data = wanted == nullptr ? nullptr : elf_rawdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) continue;
    *wanted = {static_cast<const uint8_t*>(data->d_buf), data->d_size};
  }
  return sections;
}

std::string_view die_name(Dwarf_Die& die) {
  Dwarf_Attribute attribute;
  if (dwarf_attr_integrate(&die, DW_AT_name, &attribute) == nullptr) return {};
  const char* name = dwarf_formstring(&attribute);
  return name == nullptr ? std::string_view() : name;
}

std::string_view die_linkage_name(Dwarf_Die& die) {
  Dwarf_Attribute attribute;
  for (const unsigned code : {unsigned{DW_AT_linkage_name}, unsigned{DW_AT_MIPS_linkage_name}}) {
    if (dwarf_attr_integrate(&die, code, &attribute) == nullptr) continue;
    const char* name = dwarf_formstring(&attribute);
    if (name != nullptr) return name;
  }
  return {};
}

std::optional<uint64_t> die_unsigned(Dwarf_Die& die, unsigned code) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr_integrate(&die, code, &attribute) == nullptr) return std::nullopt;
  if (dwarf_formudata(&attribute, &value) != 0) return std::nullopt;
  return value;
}

bool die_flag(Dwarf_Die& die, unsigned code) {
  Dwarf_Attribute attribute;
  bool value = false;
  if (dwarf_attr_integrate(&die, code, &attribute) == nullptr) return false;
  return dwarf_formflag(&attribute, &value) == 0 && value;
}

std::optional<Dwarf_Die> die_reference(Dwarf_Die& die, unsigned code) {
  Dwarf_Attribute attribute;
  Dwarf_Die target;
  if (dwarf_attr_integrate(&die, code, &attribute) == nullptr) return std::nullopt;
  if (dwarf_formref_die(&attribute, &target) == nullptr) return std::nullopt;
  return target;
}

std::vector<AddressRange> die_ranges(Dwarf_Die& die) {
  std::vector<AddressRange> ranges;
  Dwarf_Addr base = 0;
  Dwarf_Addr start = 0;
  Dwarf_Addr end = 0;
  ptrdiff_t at = 0;
  while (ranges.size() < kUnitRangesMax && (at = dwarf_ranges(&die, at, &base, &start, &end)) > 0) {
    if (start < end) ranges.push_back({.address = start, .size_bytes = end - start});
  }
  return ranges;
}

bool is_cpp(Dwarf_Die& die) {
  Dwarf_Die unit;
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr) return false;
  switch (dwarf_srclang(&unit)) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case DW_LANG_Rust:
      return true;
    default:
      return false;
  }
}

}  // namespace clew::target
