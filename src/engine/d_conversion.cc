// SPDX-License-Identifier: Apache-2.0
#include "engine/d_conversion.h"

#include <algorithm>

#include "target/c_base_types.h"

namespace clew::engine {

using query::d::kNoType;
using query::d::kTypeBytesMax;
using query::d::Tag;
using query::d::TypeId;
using query::d::TypeMember;
using query::d::TypeParameter;
using query::d::TypeTable;
using target::TypeDescription;
using target::TypeKind;

namespace {

constexpr uint32_t kDepthMax = 64;      // Types within types; beyond that they are void.
constexpr uint32_t kTypesMax = 100000;  // Of one question, in a file that may be made to harm.

// Converts types of one reader into one table.
class Converter {
 public:
  Converter(target::TypeReader& from, TypeTable& table, std::string_view program)
      : from_(from), table_(table), program_(program) {}

  // Records with a name stay as they are unless their members are wanted.
  TypeId convert(target::TypeId id, bool wants_members) {
    if (depth_ > kDepthMax || ++converted_ > kTypesMax) return table_.void_type();
    ++depth_;
    const TypeDescription type = from_.describe(id);
    const TypeId known = known_by_name(type);
    const bool is_enough = known != kNoType && (!wants_members || !is_open(table_.strip(known)));
    const TypeId made = is_enough ? known : by_kind(id, type, wants_members);
    --depth_;
    return known != kNoType ? known : named(type, made);
  }

 private:
  TypeId by_kind(target::TypeId id, const TypeDescription& type, bool wants_members) {
    switch (type.kind) {
      case TypeKind::Void:
      case TypeKind::Other:
        return table_.void_type();
      case TypeKind::Integer:
      case TypeKind::Boolean:
        return number(type);
      case TypeKind::Float:
        return opaque(type.size_bytes);
      case TypeKind::Enumeration:
        return enumeration(id, type);
      case TypeKind::Pointer:
        return table_.pointer_to(convert(type.target, false));
      case TypeKind::Array:
        return array(type);
      case TypeKind::Record:
        return record(id, type, wants_members);
      case TypeKind::Function:
        return function(type);
    }
    return table_.void_type();
  }

  [[nodiscard]] bool is_open(TypeId type) const {
    return table_.at(type).kind == query::d::TypeKind::Forward;
  }
  [[nodiscard]] bool is_of_kernel() const { return program_.empty(); }

  // What the table has of this name; kNoType when that is something else.
  [[nodiscard]] TypeId known_by_name(const TypeDescription& type) const {
    const bool is_number = type.kind == TypeKind::Integer || type.kind == TypeKind::Boolean ||
                           type.kind == TypeKind::Float;
    if (type.alias.empty() || (!is_number && !is_of_kernel())) return kNoType;
    const TypeId known = table_.find_base(target::c_base_name(type.alias));
    const uint32_t known_bytes = known == kNoType ? 0 : table_.size_of(known);
    const bool is_same = known_bytes == 0 || type.size_bytes == 0 || known_bytes == type.size_bytes;
    return is_same ? known : kNoType;
  }

  // `made` by the name that stands for it, if that is one word. A program's names are not in the
  // table for others to find; the kernel's are, unless they are taken.
  TypeId named(const TypeDescription& type, TypeId made) {
    const bool has_name = !type.alias.empty() && type.alias.find(' ') == std::string::npos;
    if (!has_name || type.kind == TypeKind::Other) return made;
    if (is_of_kernel()) return table_.define_typedef(type.alias, made).value_or(made);
    return table_.add_typedef(type.alias, made);
  }

  TypeId number(const TypeDescription& type) {
    const uint64_t size = type.size_bytes;
    const bool is_usual = size == 1 || size == 2 || size == 4 || size == 8;
    return is_usual ? table_.integer(static_cast<uint32_t>(size), type.is_signed) : opaque(size);
  }

  // What D has no type for, as bytes.
  TypeId opaque(uint64_t size_bytes) {
    const uint64_t count = std::min(size_bytes, kTypeBytesMax);
    return table_.array_of(table_.find_base("unsigned char"), static_cast<uint32_t>(count));
  }

  TypeId array(const TypeDescription& type) {
    const TypeId element = convert(type.target, true);
    const uint64_t size_bytes = uint64_t{table_.size_of(element)} * type.count;
    const bool is_sane = type.count < UINT32_MAX && size_bytes <= kTypeBytesMax;
    return table_.array_of(element, is_sane ? static_cast<uint32_t>(type.count) : 0);
  }

  TypeId function(const TypeDescription& type) {
    std::vector<TypeParameter> parameters;
    parameters.reserve(type.parameters.size());
    for (const target::TypeParameter& each : type.parameters)
      parameters.push_back({each.name, convert(each.type, false)});
    return table_.function(convert(type.target, false), std::move(parameters), type.is_variadic);
  }

  TypeId declared(Tag tag, const TypeDescription& type) {
    return table_.declare(tag, type.tag.empty() ? "" : std::string(program_) + type.tag);
  }

  TypeId enumeration(target::TypeId id, const TypeDescription& type) {
    if (type.size_bytes != 4) return number(type);
    const TypeId result = declared(Tag::Enum, type);
    if (!is_open(result)) return result;
    // There are names with several values, in enumerations that never meet in C. The second one is
    // then without names.
    if (!table_.define_enum(result, from_.enumerators(id))) (void)table_.define_enum(result, {});
    return result;
  }

  TypeId record(target::TypeId id, const TypeDescription& type, bool wants_members) {
    const Tag tag = type.is_union ? Tag::Union : Tag::Struct;
    // One without a name cannot be asked for later.
    const bool is_wanted = (wants_members || type.tag.empty()) && !type.is_declared;
    TypeId result = declared(tag, type);
    const bool is_another = is_of_kernel() && table_.size_of(result) != type.size_bytes;
    // The script has another record of this name.
    if (is_wanted && is_another && !is_open(result)) result = table_.declare(tag, "");
    // A record in itself is a damaged file.
    const bool is_inside = std::find(open_.begin(), open_.end(), id) != open_.end();
    if (is_wanted && is_open(result) && !is_inside) define(id, type, result);
    return result;
  }

  void define(target::TypeId id, const TypeDescription& type, TypeId result) {
    if (type.size_bytes > kTypeBytesMax) return;
    open_.push_back(id);
    std::vector<TypeMember> members;
    uint32_t align_bytes = 1;
    for (const target::TypeMember& each : from_.members(id)) {
      const TypeId member = convert(each.type, true);
      if (!lies_within(each, member, type.size_bytes)) continue;
      align_bytes = std::max(align_bytes, table_.stripped(member).align_bytes);
      members.push_back(
          {each.name, member, each.offset_bytes * 8 + each.bit_offset, each.bit_size});
    }
    open_.pop_back();
    if (type.size_bytes % align_bytes != 0) align_bytes = 1;  // Packed records are not marked.
    // Another record of its name, which lay inside, was faster.
    if (!is_open(result)) return;
    table_.define_record_as_laid_out(result, std::move(members),
                                     static_cast<uint32_t>(type.size_bytes), align_bytes);
  }

  // In the record, and a bit-field in one unit of its type.
  [[nodiscard]] bool lies_within(const target::TypeMember& member, TypeId type,
                                 uint64_t record_bytes) const {
    const uint64_t size = table_.size_of(type);
    if (member.offset_bytes > record_bytes || size > record_bytes - member.offset_bytes) {
      return false;
    }
    if (member.bit_size == 0) return true;
    const uint64_t first =
        (member.offset_bytes * 8 + member.bit_offset) % (8 * std::max<uint64_t>(size, 1));
    return table_.is_integer(type) && first + member.bit_size <= 8 * size;
  }

  target::TypeReader& from_;
  TypeTable& table_;
  std::string_view program_;
  uint32_t depth_ = 0;
  uint32_t converted_ = 0;
  std::vector<target::TypeId> open_;  // Records whose members are being converted.
};

}  // namespace

TypeId convert_type(target::TypeReader& from, target::TypeId type, TypeTable& table,
                    std::string_view program) {
  return Converter(from, table, program).convert(type, true);
}

std::string spelled(Tag tag, std::string_view name) {
  constexpr std::string_view kKeywords[] = {"", "struct ", "union ", "enum "};  // By Tag.
  return std::string(kKeywords[static_cast<size_t>(tag)]) + std::string(name);
}

}  // namespace clew::engine
