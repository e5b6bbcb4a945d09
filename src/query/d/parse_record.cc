// SPDX-License-Identifier: Apache-2.0
// struct, union and enum: references by tag and definitions.
#include <fmt/format.h>

#include "query/d/parser.h"

namespace clew::query::d {

Compiled<TypeId> Parser::tagged_type() {
  const Nested nested(nesting_);
  CLEW_TRY(check_nesting());
  const Tag tag = at("struct") ? Tag::Struct : at("union") ? Tag::Union : Tag::Enum;
  const std::string keyword = here_.text;
  CLEW_TRY(advance());
  Token word = here_;
  if (word.kind == TokenKind::Identifier) CLEW_TRY(advance());
  if (at("{") && word.module.empty())
    return tag == Tag::Enum ? enum_definition(word.name) : record_definition(tag, word.name);
  if (word.kind != TokenKind::Identifier) return syntax_error();
  const std::string module = word.module == " " ? "" : word.module;
  // The program's own comes before the kernel's of that name, also while it is being defined.
  const TypeId own = types_.find_here(tag, word.name);
  if (module.empty() && own_types_.contains(own)) return own;
  const TypeId known = types_.find(module, tag, word.name);
  if (known != kNoType) return known;
  if (!word.module.empty() || tag == Tag::Enum) {
    return compile_error(
        "D_UNKNOWN", fmt::format("failed to resolve {} {}: Unknown type name", keyword, word.text),
        word.line, word.span);
  }
  return own_type(tag, word.name);
}

// A type of this program, new unless it only declared it so far.
TypeId Parser::own_type(Tag tag, const std::string& name) {
  TypeId type = types_.declare(tag, name);
  const bool is_taken = types_.at(type).kind != TypeKind::Forward || !own_types_.contains(type);
  if (is_taken && !name.empty()) type = types_.redeclare(tag, name);
  own_types_.insert(type);
  return type;
}

// --- struct and union ----------------------------------------------------------------------------

Compiled<TypeId> Parser::record_definition(Tag tag, const std::string& name) {
  const Token begin = here_;
  const TypeId known = name.empty() ? kNoType : types_.declare(tag, name);
  if (own_types_.contains(known) && types_.at(known).kind != TypeKind::Forward)
    return fail_here("D_DECL_TYPERED", fmt::format("type redeclared: {}", types_.name_of(known)));
  const TypeId record = own_type(tag, name);
  CLEW_TRY(expect("{"));
  std::vector<TypeMember> list;
  while (!at("}"))
    CLEW_TRY(members(list));
  CLEW_TRY(advance());
  // A definition inside itself.
  if (types_.at(record).kind != TypeKind::Forward) {
    return compile_error("D_DECL_TYPERED",
                         fmt::format("type redeclared: {}", types_.name_of(record)), begin.line,
                         begin.span);
  }
  const Expected<void> defined = types_.define_record(record, std::move(list));
  if (!defined) return compile_error("D_UNKNOWN", defined.error().message, begin.line, begin.span);
  return record;
}

// One declaration of members, with its semicolon.
Compiled<void> Parser::members(std::vector<TypeMember>& members) {
  const Specifiers found = CLEW_TRY(specifiers());
  if (found.storage != StorageClass::None)
    return fail_here("D_DECL_BADCLASS", "storage class may not be used with a struct/union member");
  if (at(";") && !types_.is_record(found.type))
    return fail_here("D_DECL_MNAME", "member declaration requires a name");
  if (CLEW_TRY(accept(";"))) {
    members.push_back({"", found.type, 0, 0});
    return {};
  }
  for (;;) {
    members.push_back(CLEW_TRY(member(found.type)));
    if (CLEW_TRY(accept(";"))) return {};
    CLEW_TRY(expect(","));
  }
}

Compiled<TypeMember> Parser::member(TypeId base) {
  TypeMember member;
  member.type = base;
  if (!at(":")) {
    // Keywords of D alone may name members of C.
    const bool is_word = here_.kind == TokenKind::Keyword && !at_type();
    if (is_word) here_.kind = TokenKind::Identifier;
    here_.name = here_.text;
    Declarator derived = CLEW_TRY(declarator());
    if (derived.name.empty()) return syntax_error();
    const bool is_associative =
        !derived.layers.empty() && derived.layers[0].kind == DeclaratorLayer::Kind::Associative;
    if (is_associative) {
      return fail_here("D_DECL_DYNOBJ",
                       fmt::format("cannot have dynamic member: {}", derived.name));
    }
    member.name = derived.name;
    member.type = CLEW_TRY(apply(base, derived, 0));
  }
  if (at(":")) {
    CLEW_TRY(bit_size(member));
    return member;
  }
  CLEW_TRY(check_member(member));
  return member;
}

Compiled<void> Parser::check_member(const TypeMember& member) {
  const TypeKind kind = types_.stripped(member.type).kind;
  if (kind == TypeKind::Function) {
    return fail_here("D_DECL_COMBO",
                     fmt::format("function may not be a struct/union member: {}", member.name));
  }
  if (kind == TypeKind::Void)
    return fail_here("D_DECL_VOIDOBJ", fmt::format("cannot have void member: {}", member.name));
  if (kind == TypeKind::Forward) {
    return fail_here("D_DECL_INCOMPLETE", fmt::format("incomplete struct/union/enum {}: {}",
                                                      types_.name_of(member.type), member.name));
  }
  return {};
}

Compiled<void> Parser::bit_size(TypeMember& member) {
  CLEW_TRY(advance());
  static const std::string kAnonymous = "(anon)";
  constexpr std::string_view kNoConstant =
      "positive integral constant expression expected as bit-field size";
  const int64_t bits = CLEW_TRY(constant_expression("D_DECL_BFCONST", kNoConstant));
  const std::string& name = member.name.empty() ? kAnonymous : member.name;
  if (!types_.is_integer(member.type))
    return fail_here("D_DECL_BFTYPE", fmt::format("invalid type for bit-field: {}", name));
  if (bits < 0 || (bits == 0 && !member.name.empty()))
    return fail_here("D_DECL_BFCONST", std::string(kNoConstant));
  if (bits > int64_t{types_.size_of(member.type)} * 8)
    return fail_here("D_DECL_BFSIZE", fmt::format("bit-field too big for type: {}", name));
  member.bit_size = static_cast<uint8_t>(bits);
  return {};
}

// --- enum ----------------------------------------------------------------------------------------

Compiled<TypeId> Parser::enum_definition(const std::string& name) {
  const Token begin = here_;
  const TypeId known = name.empty() ? kNoType : types_.declare(Tag::Enum, name);
  if (own_types_.contains(known) && types_.at(known).kind != TypeKind::Forward)
    return fail_here("D_DECL_TYPERED", fmt::format("type redeclared: {}", types_.name_of(known)));
  CLEW_TRY(expect("{"));
  std::vector<TypeEnumerator> list;
  const auto* const outer = std::exchange(enumerators_, &list);
  int64_t value = 0;
  do {
    if (at("}") && !list.empty()) break;
    TypeEnumerator next{CLEW_TRY(identifier()), value};
    if (CLEW_TRY(accept("="))) {
      next.value = CLEW_TRY(constant_expression(
          "D_DECL_ENCONST",
          fmt::format("enumerator '{}' must be assigned to an integral constant expression",
                      next.name)));
    }
    const bool counts_on = next.value == value && !list.empty() && next.value > INT32_MAX;
    if (next.value < INT32_MIN || next.value > int64_t{UINT32_MAX} || counts_on) {
      return fail_here("D_DECL_ENOFLOW", fmt::format("enumerator '{}' value overflows INT_MAX ({})",
                                                     next.name, INT32_MAX));
    }
    if (!own_enumerators_.insert(next.name).second)
      return fail_here("D_DECL_IDRED", fmt::format("identifier redeclared: {}", next.name));
    value = next.value + 1;
    list.push_back(std::move(next));
  } while (CLEW_TRY(accept(",")));
  CLEW_TRY(expect("}"));
  enumerators_ = outer;
  const TypeId type = own_type(Tag::Enum, name);
  const Expected<void> defined = types_.define_enum(type, std::move(list));
  if (!defined) {
    return compile_error("D_DECL_IDRED",
                         fmt::format("identifier redeclared: {}", defined.error().message),
                         begin.line, begin.span);
  }
  return type;
}

}  // namespace clew::query::d
