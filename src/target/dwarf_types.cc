// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf_types.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "target/c_base_types.h"

namespace clew::target {

namespace {

// Broken DWARF can go in circles; no program goes this deep.
constexpr unsigned kTypeDepthMax = 32;
constexpr size_t kMembersMax = 65536;
constexpr uint64_t kPointerBytes = 8;

bool is_qualifier(int tag) {
  return tag == DW_TAG_const_type || tag == DW_TAG_volatile_type || tag == DW_TAG_restrict_type ||
         tag == DW_TAG_atomic_type || tag == DW_TAG_immutable_type || tag == DW_TAG_packed_type ||
         tag == DW_TAG_shared_type;
}

bool is_transparent(int tag) {
  return tag == DW_TAG_typedef || is_qualifier(tag);
}

bool is_record(int tag) {
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

bool is_reference(int tag) {
  return tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
}

std::string_view keyword_of(int tag) {
  switch (tag) {
    case DW_TAG_structure_type:
      return "struct ";
    case DW_TAG_class_type:
      return "class ";
    case DW_TAG_union_type:
      return "union ";
    case DW_TAG_enumeration_type:
      return "enum ";
    default:
      return "";
  }
}

// The tag that a keyword asks for: "struct client" gives the structure, "client" anything.
struct NameWanted {
  std::string name;
  int tag = 0;
  unsigned pointers = 0;
};

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

void trim(std::string_view& text) {
  while (text.starts_with(' ')) {
    text.remove_prefix(1);
  }
  while (text.ends_with(' ')) {
    text.remove_suffix(1);
  }
}

NameWanted parse_name(std::string_view text) {
  NameWanted wanted;
  trim(text);
  while (text.ends_with('*')) {
    ++wanted.pointers;
    text.remove_suffix(1);
    trim(text);
  }
  while (take_prefix(text, "const ") || take_prefix(text, "volatile ")) {
    trim(text);
  }
  struct Keyword {
    std::string_view text;
    int tag;
  };
  constexpr std::array<Keyword, 4> kKeywords = {{{"struct ", DW_TAG_structure_type},
                                                 {"class ", DW_TAG_structure_type},
                                                 {"union ", DW_TAG_union_type},
                                                 {"enum ", DW_TAG_enumeration_type}}};
  for (const Keyword& keyword : kKeywords) {
    if (wanted.tag == 0 && take_prefix(text, keyword.text)) wanted.tag = keyword.tag;
  }
  trim(text);
  wanted.name = wanted.tag == 0 ? c_base_name(text) : std::string(text);
  return wanted;
}

// Class and struct are one thing to C++.
bool tag_matches(int tag, int wanted) {
  return wanted == 0 || tag == wanted ||
         (wanted == DW_TAG_structure_type && tag == DW_TAG_class_type);
}

std::string with_star(std::string name, std::string_view star) {
  if (!name.ends_with('*') && !name.ends_with('&')) name += ' ';
  return name.append(star);
}

// 0 where there cannot be so many.
uint64_t size_of_array(uint64_t element_bytes, uint64_t count) {
  uint64_t size = 0;
  return __builtin_mul_overflow(element_bytes, count, &size) ? 0 : size;
}

}  // namespace

TypeId TypeTable::type_of(Dwarf_Die& die) {
  const auto type = die_reference(die, DW_AT_type);
  return type ? add(*type) : kVoidType;
}

TypeId TypeTable::add(Dwarf_Die die) {
  const auto [known, is_new] = by_die_.emplace(die.addr, static_cast<TypeId>(entries_.size()));
  if (is_new) {
    Entry entry;
    entry.die = die;
    entry.has_die = true;
    entries_.push_back(std::move(entry));
  }
  return known->second;
}

TypeId TypeTable::add_made_up(TypeDescription description) {
  Entry entry;
  entry.is_described = true;
  entry.description = std::move(description);
  entries_.push_back(std::move(entry));
  return static_cast<TypeId>(entries_.size() - 1);
}

TypeId TypeTable::pointer_to(TypeId target) {
  const auto known = pointers_.find(target);
  if (known != pointers_.end()) return known->second;
  const std::string name = target == kVoidType ? "void" : describe(target).name;
  const TypeId pointer = add_made_up({.kind = TypeKind::Pointer,
                                      .size_bytes = kPointerBytes,
                                      .target = target,
                                      .name = with_star(name, "*")});
  pointers_.emplace(target, pointer);
  return pointer;
}

const TypeDescription& TypeTable::describe(TypeId type) {
  if (type >= entries_.size()) type = kVoidType;
  if (!entries_[type].is_described) fill(type);
  return entries_[type].description;
}

Dwarf_Die* TypeTable::definition(TypeId type) {
  if (type >= entries_.size() || !entries_[type].has_die) return nullptr;
  (void)describe(type);
  return entries_[type].definition.addr == nullptr ? nullptr : &entries_[type].definition;
}

// The entry is marked before it is filled: a type may lead back to itself.
void TypeTable::fill(TypeId type) {
  entries_[type].is_described = true;
  if (!entries_[type].has_die) {
    entries_[type].description = {.kind = TypeKind::Void, .name = "void"};
    return;
  }
  Dwarf_Die die = entries_[type].die;
  TypeDescription description;
  description.name = name_of(die, 0);
  entries_[type].description.name = description.name;
  Dwarf_Die stripped = definition_of(die);
  entries_[type].definition = stripped;
  if (stripped.addr != nullptr) fill_by_tag(description, stripped);
  fill_names(description, die, stripped);
  entries_[type].description = std::move(description);
}

// A record without a name of its own has that of its typedef, by which find() finds it again.
void TypeTable::fill_names(TypeDescription& description, Dwarf_Die die, Dwarf_Die stripped) {
  for (unsigned depth = 0; is_qualifier(dwarf_tag(&die)) && depth < kTypeDepthMax; ++depth) {
    const auto next = die_reference(die, DW_AT_type);
    if (!next) return;
    die = *next;
  }
  const int tag = dwarf_tag(&die);
  if (tag == DW_TAG_typedef || tag == DW_TAG_base_type) description.alias = die_name(die);
  if (description.kind != TypeKind::Record && description.kind != TypeKind::Enumeration) return;
  const bool is_named = !die_name(stripped).empty();
  description.tag = is_named ? qualified_name(stripped) : description.alias;
  if (description.alias.empty() && is_cpp(stripped)) description.alias = description.tag;
}

// A null entry when typedefs and qualifiers end in nothing: void.
Dwarf_Die TypeTable::definition_of(Dwarf_Die die) {
  for (unsigned depth = 0; is_transparent(dwarf_tag(&die)); ++depth) {
    const auto next = die_reference(die, DW_AT_type);
    if (!next || depth > kTypeDepthMax) return {};
    die = *next;
  }
  const int tag = dwarf_tag(&die);
  const bool is_named = is_record(tag) || tag == DW_TAG_enumeration_type;
  if (!is_named || !die_flag(die, DW_AT_declaration)) return die;
  const Dwarf_Die* defined = find_named(qualified_name(die), tag);
  return defined == nullptr ? die : *defined;
}

void TypeTable::fill_by_tag(TypeDescription& description, Dwarf_Die& die) {
  description.size_bytes = die_unsigned(die, DW_AT_byte_size).value_or(0);
  const int tag = dwarf_tag(&die);
  switch (tag) {
    case DW_TAG_base_type:
      return fill_base(description, die);
    case DW_TAG_enumeration_type:
      return fill_enumeration(description, die);
    case DW_TAG_array_type:
      return fill_array(description, die);
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
      description.kind = TypeKind::Record;
      description.is_union = tag == DW_TAG_union_type;
      description.is_declared = die_flag(die, DW_AT_declaration);
      return;
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
      description.kind = TypeKind::Pointer;
      description.is_reference = is_reference(tag);
      description.size_bytes = kPointerBytes;
      description.target = type_of(die);
      return;
    default:
      description.kind = TypeKind::Other;
  }
}

void TypeTable::fill_base(TypeDescription& description, Dwarf_Die& die) {
  const uint64_t encoding = die_unsigned(die, DW_AT_encoding).value_or(0);
  description.kind = TypeKind::Integer;
  switch (encoding) {
    case DW_ATE_boolean:
      description.kind = TypeKind::Boolean;
      return;
    case DW_ATE_float:
      description.kind = TypeKind::Float;
      return;
    case DW_ATE_signed_char:
      description.is_signed = true;
      description.is_character = true;
      return;
    case DW_ATE_unsigned_char:
    case DW_ATE_UTF:
      description.is_character = true;
      return;
    case DW_ATE_signed:
      description.is_signed = true;
      description.is_character = die_name(die) == "wchar_t";
      return;
    case DW_ATE_unsigned:
    case DW_ATE_address:
      return;
    default:
      description.kind = TypeKind::Other;
  }
}

void TypeTable::fill_enumeration(TypeDescription& description, Dwarf_Die& die) {
  description.kind = TypeKind::Enumeration;
  const auto underlying = die_reference(die, DW_AT_type);
  if (!underlying) return;
  Dwarf_Die base = definition_of(*underlying);
  if (base.addr == nullptr) return;
  const uint64_t encoding = die_unsigned(base, DW_AT_encoding).value_or(0);
  description.is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
  if (description.size_bytes == 0) {
    description.size_bytes = die_unsigned(base, DW_AT_byte_size).value_or(0);
  }
}

// One child per dimension, the outermost first: `int a[2][3]` is an array of 2 arrays of 3.
void TypeTable::fill_array(TypeDescription& description, Dwarf_Die& die) {
  std::vector<uint64_t> counts;
  for_each_child(die, [&](Dwarf_Die& child) {
    if (dwarf_tag(&child) != DW_TAG_subrange_type || counts.size() > kTypeDepthMax) return;
    const auto count = die_unsigned(child, DW_AT_count);
    const auto upper = die_unsigned(child, DW_AT_upper_bound);
    // `int a[0]` has an upper bound of -1, which must not become a count of 2^64.
    const auto usable = [](const std::optional<uint64_t>& number) {
      return number && *number < std::numeric_limits<uint32_t>::max();
    };
    if (count) {
      counts.push_back(usable(count) ? *count : 0);
    } else {
      counts.push_back(usable(upper) ? *upper + 1 : 0);
    }
  });
  if (counts.empty()) counts.push_back(0);
  TypeId element = type_of(die);
  uint64_t size = element == kVoidType ? 0 : describe(element).size_bytes;
  for (size_t i = counts.size(); i-- > 1;) {
    size = size_of_array(size, counts[i]);
    std::string name = fmt::format("{}[{}]", describe(element).name, counts[i]);
    element = add_made_up({.kind = TypeKind::Array,
                           .size_bytes = size,
                           .target = element,
                           .count = counts[i],
                           .name = std::move(name)});
  }
  description.kind = TypeKind::Array;
  description.target = element;
  description.count = counts[0];
  if (description.size_bytes == 0) description.size_bytes = size_of_array(size, counts[0]);
}

std::string TypeTable::name_of(Dwarf_Die& die, unsigned depth) {
  if (depth > kTypeDepthMax) return "…";
  const int tag = dwarf_tag(&die);
  auto target = die_reference(die, DW_AT_type);
  const auto target_name = [&] { return target ? name_of(*target, depth + 1) : "void"; };
  switch (tag) {
    case DW_TAG_const_type:
      // A pointer's own const stands behind it.
      return target && dwarf_tag(&*target) == DW_TAG_pointer_type ? target_name() + " const"
                                                                  : "const " + target_name();
    case DW_TAG_volatile_type:
      return "volatile " + target_name();
    case DW_TAG_restrict_type:
    case DW_TAG_atomic_type:
      return target_name();
    case DW_TAG_pointer_type:
      if (target && dwarf_tag(&*target) == DW_TAG_subroutine_type) {
        auto result = die_reference(*target, DW_AT_type);
        return (result ? name_of(*result, depth + 1) : "void") + " (*)()";
      }
      return with_star(target_name(), "*");
    case DW_TAG_reference_type:
      return with_star(target_name(), "&");
    case DW_TAG_rvalue_reference_type:
      return with_star(target_name(), "&&");
    case DW_TAG_array_type:
      return target_name() + "[]";
    case DW_TAG_subroutine_type:
      return target_name() + " ()";
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
      return record_name(die);
    default:
      return std::string(die_name(die));
  }
}

std::string TypeTable::record_name(Dwarf_Die& die) {
  const std::string_view keyword = keyword_of(dwarf_tag(&die));
  if (die_name(die).empty()) return fmt::format("{}{{…}}", keyword);
  if (is_cpp(die)) return qualified_name(die);
  return fmt::format("{}{}", keyword, die_name(die));
}

// With its namespaces and classes, which only a walk through its unit tells.
std::string TypeTable::qualified_name(Dwarf_Die& die) {
  if (!is_cpp(die)) return std::string(die_name(die));
  if (unit_by_die_.empty()) {
    const auto units = file_.units();
    for (size_t i = 0; i < units.size(); ++i) {
      unit_by_die_.emplace(units[i].die.addr, i);
    }
  }
  Dwarf_Die unit;
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) != nullptr) {
    const auto index = unit_by_die_.find(unit.addr);
    if (index != unit_by_die_.end()) index_unit(index->second);
  }
  const auto known = qualified_.find(die.addr);
  return known == qualified_.end() ? std::string(die_name(die)) : known->second;
}

bool TypeTable::index_next_unit() {
  if (next_unit_ >= file_.units().size()) return false;
  index_unit(next_unit_++);
  return true;
}

void TypeTable::index_unit(size_t unit) {
  const auto units = file_.units();
  is_indexed_.resize(units.size(), false);
  if (unit >= units.size() || is_indexed_[unit]) return;
  is_indexed_[unit] = true;
  index_scope(units[unit].die, "", 0);
}

void TypeTable::index_scope(Dwarf_Die& scope, const std::string& prefix, unsigned depth) {
  if (depth > kTypeDepthMax) return;
  for_each_child(scope, [&](Dwarf_Die& child) {
    const int tag = dwarf_tag(&child);
    if (tag == DW_TAG_namespace) {
      const std::string_view name = die_name(child);
      const std::string inner =
          fmt::format("{}{}::", prefix, name.empty() ? "(anonymous namespace)" : name);
      index_scope(child, inner, depth + 1);
    } else if (is_record(tag) || tag == DW_TAG_enumeration_type || tag == DW_TAG_typedef ||
               tag == DW_TAG_base_type) {
      index_type(child, prefix, depth);
    }
  });
}

void TypeTable::index_type(Dwarf_Die& die, const std::string& prefix, unsigned depth) {
  const int tag = dwarf_tag(&die);
  const std::string_view name = die_name(die);
  const bool is_declaration = die_flag(die, DW_AT_declaration);
  std::string qualified = prefix + std::string(name);
  if (!name.empty() && !is_declaration) {
    by_name_.emplace(tag == DW_TAG_base_type ? c_base_name(name) : qualified, die);
  }
  if (tag == DW_TAG_enumeration_type) {
    for_each_child(die, [&](Dwarf_Die& child) {
      Dwarf_Attribute attribute;
      Dwarf_Sword value = 0;
      const bool has_value = dwarf_attr(&child, DW_AT_const_value, &attribute) != nullptr &&
                             dwarf_formsdata(&attribute, &value) == 0;
      if (has_value) enumerators_.emplace(prefix + std::string(die_name(child)), value);
    });
  }
  if (is_record(tag) && is_cpp(die)) index_scope(die, qualified + "::", depth + 1);
  if (!name.empty() && !prefix.empty()) qualified_.emplace(die.addr, std::move(qualified));
}

const Dwarf_Die* TypeTable::find_named(const std::string& name, int tag) {
  if (name.empty()) return nullptr;
  size_t seen = 0;
  do {
    if (by_name_.count(name) == seen) continue;
    seen = by_name_.count(name);
    const auto [begin, end] = by_name_.equal_range(name);
    for (auto candidate = begin; candidate != end; ++candidate) {
      if (tag_matches(dwarf_tag(&candidate->second), tag)) return &candidate->second;
    }
  } while (index_next_unit());
  return nullptr;
}

TypeId TypeTable::find(std::string_view text) {
  const NameWanted wanted = parse_name(text);
  TypeId type = kVoidType;
  if (wanted.tag != 0 || wanted.name != "void") {
    const Dwarf_Die* die = find_named(wanted.name, wanted.tag);
    if (die == nullptr) return kVoidType;
    type = add(*die);
  }
  for (unsigned i = 0; i < std::min(wanted.pointers, kTypeDepthMax); ++i) {
    type = pointer_to(type);
  }
  return type;
}

std::vector<TypeMember> TypeTable::members(TypeId record) {
  std::vector<TypeMember> result;
  Dwarf_Die* die = definition(record);
  if (die == nullptr || !is_record(dwarf_tag(die))) return result;
  Dwarf_Die copy = *die;  // Types of members may make the table grow and move.
  add_members(copy, 0, 0, result);
  return result;
}

void TypeTable::add_members(Dwarf_Die& record, uint64_t offset, unsigned depth,
                            std::vector<TypeMember>& result) {
  if (depth > kTypeDepthMax) return;
  for_each_child(record, [&](Dwarf_Die& child) {
    const int tag = dwarf_tag(&child);
    const bool is_stored = tag == DW_TAG_member || tag == DW_TAG_inheritance;
    const bool is_static = die_flag(child, DW_AT_external) || die_flag(child, DW_AT_declaration);
    // A virtual base lies where only the object itself tells.
    const bool is_virtual = die_unsigned(child, DW_AT_virtuality).value_or(0) != 0;
    if (!is_stored || is_static || is_virtual || result.size() >= kMembersMax) return;
    add_member(child, offset, depth, result);
  });
}

void TypeTable::add_member(Dwarf_Die& die, uint64_t offset, unsigned depth,
                           std::vector<TypeMember>& result) {
  TypeMember member;
  member.name = die_name(die);
  member.type = type_of(die);
  member.offset_bytes = offset + die_unsigned(die, DW_AT_data_member_location).value_or(0);
  if (member.name.empty()) {  // A base class or an anonymous union: its members are the record's.
    Dwarf_Die* inner = definition(member.type);
    if (inner == nullptr || !is_record(dwarf_tag(inner))) return;
    Dwarf_Die copy = *inner;
    return add_members(copy, member.offset_bytes, depth + 1, result);
  }
  const uint64_t bits = die_unsigned(die, DW_AT_bit_size).value_or(0);
  const uint64_t storage_bytes = std::max<uint64_t>(describe(member.type).size_bytes, 1);
  if (bits != 0 && bits <= 64 && storage_bytes <= 8) {
    uint64_t first = 0;  // From offset_bytes, in bits.
    if (const auto absolute = die_unsigned(die, DW_AT_data_bit_offset)) {
      first = *absolute;
    } else if (const auto from_top = die_unsigned(die, DW_AT_bit_offset)) {
      // DWARF 2 and 3 count from the most significant bit.
      first = storage_bytes * 8 - *from_top - bits;
    }
    uint64_t skipped = first / (storage_bytes * 8) * storage_bytes;
    // A packed field may straddle two units of its type: start at its own byte then.
    if (first - skipped * 8 + bits > storage_bytes * 8) skipped = first / 8;
    member.offset_bytes += skipped;
    member.bit_offset = static_cast<uint8_t>(first - skipped * 8);
    member.bit_size = static_cast<uint8_t>(bits);
  }
  result.push_back(std::move(member));
}

std::vector<TypeEnumerator> TypeTable::enumerators(TypeId enumeration) {
  std::vector<TypeEnumerator> result;
  Dwarf_Die* die = definition(enumeration);
  if (die == nullptr || dwarf_tag(die) != DW_TAG_enumeration_type) return result;
  const bool is_signed = describe(enumeration).is_signed;
  for_each_child(*die, [&](Dwarf_Die& child) {
    Dwarf_Attribute attribute;
    Dwarf_Sword value = 0;
    Dwarf_Word bits = 0;
    if (dwarf_attr(&child, DW_AT_const_value, &attribute) == nullptr) return;
    if (!is_signed && dwarf_formudata(&attribute, &bits) == 0) {
      value = static_cast<int64_t>(bits);
    } else if (dwarf_formsdata(&attribute, &value) != 0) {
      return;
    }
    if (result.size() < kMembersMax) {
      result.push_back({.name = std::string(die_name(child)), .value = value});
    }
  });
  return result;
}

std::optional<TypeEnumerator> TypeTable::find_enumerator(std::string_view name) {
  const std::string wanted(name);
  do {
    const auto found = enumerators_.find(wanted);
    if (found != enumerators_.end()) {
      return TypeEnumerator{.name = wanted, .value = found->second};
    }
  } while (index_next_unit());
  return std::nullopt;
}

}  // namespace clew::target
