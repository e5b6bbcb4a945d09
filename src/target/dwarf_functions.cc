// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf_functions.h"

#include <fmt/format.h>

namespace clew::target {

namespace {

constexpr unsigned kScopesMax = 256;

bool may_hold_functions(int tag) {
  switch (tag) {
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_namespace:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_module:
    case DW_TAG_common_block:
      return true;
    default:
      return false;
  }
}

// Through abstract origins and specifications to the entry that all copies share.
Dwarf_Die origin_of(Dwarf_Die die) {
  for (unsigned depth = 0; depth < kScopesMax; ++depth) {
    Dwarf_Attribute attribute;
    Dwarf_Die next;
    const bool has_origin = dwarf_attr(&die, DW_AT_abstract_origin, &attribute) != nullptr &&
                            dwarf_formref_die(&attribute, &next) != nullptr;
    if (!has_origin) break;
    die = next;
  }
  return die;
}

}  // namespace

FunctionTable::UnitFunctions* FunctionTable::unit_functions(DwarfUnit* unit) {
  const auto units = file_.units();
  if (unit == nullptr) return nullptr;
  units_.resize(units.size());
  UnitFunctions& functions = units_[static_cast<size_t>(unit - units.data())];
  if (!functions.is_read) {
    functions.is_read = true;
    walk(unit->die, 0, functions);
  }
  return &functions;
}

void FunctionTable::walk(Dwarf_Die& parent, unsigned depth, UnitFunctions& functions) {
  if (depth > kScopesMax) return;
  for_each_child(parent, [&](Dwarf_Die& child) {
    const int tag = dwarf_tag(&child);
    if (tag == DW_TAG_subprogram) add_function(child, functions);
    if (tag == DW_TAG_inlined_subroutine) add_inlined(child, functions);
    if (may_hold_functions(tag) && dwarf_haschildren(&child) == 1) {
      walk(child, depth + 1, functions);
    }
  });
}

void FunctionTable::add_function(Dwarf_Die& die, UnitFunctions& functions) {
  const std::vector<AddressRange> ranges = die_ranges(die);
  if (ranges.empty()) return;
  // The entry point is the lowest address of the first range, unless DWARF says otherwise.
  Dwarf_Addr entry = ranges.front().address;
  Dwarf_Addr stated = 0;
  if (dwarf_entrypc(&die, &stated) == 0) entry = stated;
  functions.by_address.emplace(entry, die);
  for (const AddressRange& range : ranges) {
    functions.scopes.push_back({range, next_scope_, die});
  }
  ++next_scope_;
}

void FunctionTable::add_inlined(Dwarf_Die& die, UnitFunctions& functions) {
  const std::vector<AddressRange> ranges = die_ranges(die);
  Dwarf_Addr entry = 0;
  // Inside an abstract function there are copies that have no code: patterns, not copies.
  if (ranges.empty() && dwarf_entrypc(&die, &entry) != 0) return;
  Dwarf_Die origin = origin_of(die);
  ++inlined_[inline_key(origin)];
  for (const AddressRange& range : ranges) {
    functions.scopes.push_back({range, next_scope_, die});
  }
  ++next_scope_;
}

// A function with external linkage is the same in every unit, by its name; another one is its
// unit's own, by its entry.
std::string FunctionTable::inline_key(Dwarf_Die& origin) {
  const std::string_view linkage = die_linkage_name(origin);
  if (!linkage.empty()) return std::string(linkage);
  if (die_flag(origin, DW_AT_external)) return std::string(die_name(origin));
  return fmt::format("@{}", static_cast<const void*>(origin.addr));
}

std::optional<Dwarf_Die> FunctionTable::find(uint64_t address) {
  const UnitFunctions* functions = unit_functions(file_.unit_at(address));
  if (functions == nullptr) return std::nullopt;
  const auto found = functions->by_address.find(address);
  return found == functions->by_address.end() ? std::nullopt : std::optional(found->second);
}

std::optional<uint64_t> FunctionTable::inlined_copies(Dwarf_Die function) {
  if (file_.size_bytes() > kInlineScanMaxBytes) return std::nullopt;
  for (DwarfUnit& unit : file_.units()) {
    unit_functions(&unit);
  }
  Dwarf_Die origin = origin_of(function);
  const auto found = inlined_.find(inline_key(origin));
  return found == inlined_.end() ? 0 : found->second;
}

std::vector<Dwarf_Die> FunctionTable::scopes_at(uint64_t address) {
  std::vector<Dwarf_Die> dies;
  const UnitFunctions* functions = unit_functions(file_.unit_at(address));
  if (functions == nullptr) return dies;
  for (const Scope& scope : functions->scopes) {
    if (scope.range.contains(address)) dies.push_back(scope.die);
  }
  return dies;
}

uint64_t FunctionTable::scope_at(uint64_t address) {
  const UnitFunctions* functions = unit_functions(file_.unit_at(address));
  if (functions == nullptr) return 0;
  uint64_t innermost = 0;
  for (const Scope& scope : functions->scopes) {
    if (scope.range.contains(address)) innermost = scope.id;
  }
  return innermost;
}

}  // namespace clew::target
