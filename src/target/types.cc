// SPDX-License-Identifier: Apache-2.0
#include "target/types.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/nearest.h"
#include "target/demangle.h"
#include "target/dwarf_file.h"
#include "target/dwarf_functions.h"
#include "target/dwarf_lines.h"
#include "target/dwarf_signature.h"
#include "target/dwarf_types.h"

namespace clew::target {

namespace {

// Functions whose every name says that the compiler made them for its own callers.
std::vector<uint64_t> clones_of(const ModuleImage& image) {
  std::vector<uint64_t> addresses;
  for (const Function& function : image.functions()) {
    const bool is_clone =
        std::all_of(function.names.begin(), function.names.end(), [](const FunctionName& name) {
          const std::string_view suffix = name.linkage.substr(clone_suffix_at(name.linkage));
          return suffix.find(".isra") != std::string_view::npos ||
                 suffix.find(".constprop") != std::string_view::npos ||
                 suffix.find(".part") != std::string_view::npos;
        });
    if (is_clone) addresses.push_back(function.address);
  }
  return addresses;
}

std::string function_name(Dwarf_Die& function) {
  const std::string_view linkage = die_linkage_name(function);
  Demangler demangler;
  const std::string_view plain = demangler.demangle(linkage).plain;
  if (!plain.empty()) return std::string(plain);
  return std::string(linkage.empty() ? die_name(function) : linkage);
}

// Where an inlined copy stands in the function around it.
SourceLine place_of_call(Dwarf_Die& copy) {
  SourceLine place;
  Dwarf_Die unit;
  Dwarf_Files* files = nullptr;
  const auto file = die_unsigned(copy, DW_AT_call_file);
  const auto line = die_unsigned(copy, DW_AT_call_line);
  const bool is_known = file && line && dwarf_diecu(&copy, &unit, nullptr, nullptr) != nullptr &&
                        dwarf_getsrcfiles(&unit, &files, nullptr) == 0;
  const char* const path = is_known ? dwarf_filesrc(files, *file, nullptr, nullptr) : nullptr;
  if (path == nullptr) return place;
  place.file = path;
  place.line = static_cast<uint32_t>(*line);
  return place;
}

std::vector<AddressRange> code_of(const ModuleImage& image) {
  std::vector<AddressRange> ranges;
  for (const Section& section : image.sections()) {
    if (section.executable) ranges.push_back({section.address, section.size_bytes});
  }
  return ranges;
}

}  // namespace

// The tables refer to the file and to each other, so none of them ever moves.
struct DebugInfo::Data {
  Data(DwarfFile found, const ModuleImage& image)
      : name(image.name()),
        clones(clones_of(image)),
        code(code_of(image)),
        file(std::move(found)),
        types(file),
        functions(file),
        lines(file, functions, code) {}

  std::string name;
  std::vector<uint64_t> clones;  // Ascending.
  std::vector<AddressRange> code;
  DwarfFile file;
  TypeTable types;
  FunctionTable functions;
  LineTable lines;
};

DebugInfo::DebugInfo(std::unique_ptr<Data> data) : data_(std::move(data)) {}
DebugInfo::DebugInfo(DebugInfo&&) noexcept = default;
DebugInfo& DebugInfo::operator=(DebugInfo&&) noexcept = default;
DebugInfo::~DebugInfo() = default;

Expected<DebugInfo> DebugInfo::open(const ModuleImage& image, const ReadOptions& options) {
  DwarfFile file = CLEW_TRY(DwarfFile::find(image, options));
  return DebugInfo(std::make_unique<Data>(std::move(file), image));
}

Expected<Signature> DebugInfo::signature(uint64_t function_address) {
  const auto function = data_->functions.find(function_address);
  if (!function) {
    return fail(ErrorCode::NotFound,
                fmt::format("the debug information of {} describes no function at {:#x}",
                            data_->name, function_address));
  }
  const bool is_clone =
      std::binary_search(data_->clones.begin(), data_->clones.end(), function_address);
  return read_signature(*function, function_address, is_clone, data_->types);
}

TypeId DebugInfo::find_type(std::string_view name) {
  return data_->types.find(name);
}
TypeDescription DebugInfo::describe(TypeId type) {
  return data_->types.describe(type);
}
std::vector<TypeMember> DebugInfo::members(TypeId record) {
  return data_->types.members(record);
}

Expected<TypeMember> DebugInfo::member(TypeId record, std::string_view name) {
  std::vector<TypeMember> all = data_->types.members(record);
  std::vector<std::string_view> names;
  for (TypeMember& member : all) {
    if (member.name == name) return std::move(member);
    names.push_back(member.name);
  }
  const std::string near = nearest_name(name, names);
  return fail(ErrorCode::NotFound, fmt::format("'{}' has no member '{}'{}", describe(record).name,
                                               name, did_you_mean(near)));
}

std::vector<TypeEnumerator> DebugInfo::enumerators(TypeId enumeration) {
  return data_->types.enumerators(enumeration);
}

std::optional<TypeEnumerator> DebugInfo::find_enumerator(std::string_view name) {
  return data_->types.find_enumerator(name);
}

Expected<std::vector<LineAddress>> DebugInfo::find_line(std::string_view file, uint32_t line) {
  return data_->lines.find(file, line);
}

std::optional<SourceLine> DebugInfo::line_of(uint64_t address) {
  return data_->lines.at(address);
}

std::vector<SourceCall> DebugInfo::calls_at(uint64_t address) {
  std::vector<Dwarf_Die> scopes = data_->functions.scopes_at(address);
  std::vector<SourceCall> calls;
  SourceLine place = data_->lines.at(address).value_or(SourceLine{});
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    const bool is_inlined = dwarf_tag(&*scope) == DW_TAG_inlined_subroutine;
    calls.push_back({.function = function_name(*scope),
                     .place = std::exchange(place, place_of_call(*scope)),
                     .is_inlined = is_inlined});
    if (!is_inlined) break;
  }
  return calls;
}

std::string DebugInfo::directory_at(uint64_t address) {
  DwarfUnit* const unit = data_->file.unit_at(address);
  Dwarf_Attribute attribute;
  if (unit == nullptr || dwarf_attr(&unit->die, DW_AT_comp_dir, &attribute) == nullptr) return "";
  const char* const directory = dwarf_formstring(&attribute);
  return directory == nullptr ? "" : directory;
}

Expected<uint64_t> DebugInfo::inlined_copies(uint64_t function_address) {
  const auto function = data_->functions.find(function_address);
  if (!function) {
    return fail(ErrorCode::NotFound,
                fmt::format("the debug information of {} describes no function at {:#x}",
                            data_->name, function_address));
  }
  const auto copies = data_->functions.inlined_copies(*function);
  if (!copies) {
    return fail(ErrorCode::Limit, fmt::format("the debug information of {} is too large to count "
                                              "inlined copies",
                                              data_->name));
  }
  return *copies;
}

}  // namespace clew::target
