// SPDX-License-Identifier: Apache-2.0
// Where the members of structs and unions lie, by the System V ABI for x86-64 (3.1.2): a bit-field
// lies inside one unit of its declared type, aligned as that type, and shares bytes with what
// stands before it.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/assert.h"
#include "query/d/types.h"

namespace clew::query::d {
namespace {

uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

class Layout {
 public:
  Layout(const TypeTable& types, bool is_union) : types_(types), is_union_(is_union) {}

  void place(TypeMember& member) {
    const Type& type = types_.stripped(member.type);
    const uint64_t align_bits = uint64_t{std::max(type.align_bytes, 1U)} * 8;
    const uint64_t type_bits = uint64_t{type.size_bytes} * 8;
    const uint64_t next = is_union_ ? 0 : end_bits_;
    if (member.bit_size != 0) {
      const bool fits = next / type_bits == (next + member.bit_size - 1) / type_bits;
      member.offset_bits = fits ? next : round_up(next, align_bits);
      advance(member.offset_bits + member.bit_size);
      // Padding has a place but no say in the alignment.
      if (!member.name.empty()) align_bytes_ = std::max(align_bytes_, type.align_bytes);
      return;
    }
    member.offset_bits = round_up(next, align_bits);
    if (is_separator(member)) {
      advance(member.offset_bits);
      return;
    }
    advance(member.offset_bits + type_bits);
    align_bytes_ = std::max(align_bytes_, type.align_bytes);
  }

  [[nodiscard]] bool is_kept(const TypeMember& member) const {
    return !member.name.empty() || types_.is_record(member.type);
  }
  [[nodiscard]] uint32_t align_bytes() const { return align_bytes_; }
  [[nodiscard]] uint64_t size_bytes() const {
    return round_up(round_up(end_bits_, 8) / 8, align_bytes_);
  }

 private:
  [[nodiscard]] bool is_separator(const TypeMember& member) const {
    return member.name.empty() && types_.is_integer(member.type);
  }
  void advance(uint64_t end_bits) { end_bits_ = std::max(end_bits_, end_bits); }

  const TypeTable& types_;
  const bool is_union_;
  uint64_t end_bits_ = 0;
  uint32_t align_bytes_ = 1;
};

}  // namespace

Expected<void> TypeTable::define_record(TypeId record, std::vector<TypeMember> members) {
  Layout layout(*this, at(record).tag == Tag::Union);
  std::set<std::string_view> names;
  for (TypeMember& member : members) {
    layout.place(member);
    if (layout.size_bytes() > kTypeBytesMax)
      return fail(ErrorCode::Limit, fmt::format("{} is too large", name_of(record)));
    if (!member.name.empty() && !names.insert(member.name).second) {
      return fail(ErrorCode::InvalidQuery,
                  fmt::format("failed to define member '{}': Duplicate member or variable name",
                              member.name));
    }
  }
  std::erase_if(members, [&](const TypeMember& member) { return !layout.is_kept(member); });
  define_record_as_laid_out(record, std::move(members), static_cast<uint32_t>(layout.size_bytes()),
                            layout.align_bytes());
  return {};
}

void TypeTable::define_record_as_laid_out(TypeId record, std::vector<TypeMember> members,
                                          uint32_t size_bytes, uint32_t align_bytes) {
  Type& type = types_[record];
  CLEW_ASSERT(type.kind == TypeKind::Forward && type.tag != Tag::Enum);
  type.kind = type.tag == Tag::Union ? TypeKind::Union : TypeKind::Struct;
  type.members = std::move(members);
  type.size_bytes = size_bytes;
  type.align_bytes = align_bytes;
}

std::optional<MemberPlace> TypeTable::member(TypeId record, std::string_view name) const {
  if (!is_record(record)) return std::nullopt;
  for (const TypeMember& member : stripped(record).members) {
    if (member.name == name) return MemberPlace{member.type, member.offset_bits, member.bit_size};
    if (!member.name.empty()) continue;
    std::optional<MemberPlace> inner = this->member(member.type, name);
    if (!inner) continue;
    inner->offset_bits += member.offset_bits;
    return inner;
  }
  return std::nullopt;
}

}  // namespace clew::query::d
