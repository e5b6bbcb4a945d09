// SPDX-License-Identifier: Apache-2.0
// Text and bytes of the traced program's memory, and what is made of them to be read by people.
// What programs and libraries call a string is no matter of this file: vocabularies say that, as
// [[value]]s (query/vocabulary.h).
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "query/arithmetic.h"
#include "query/evaluator.h"
#include "query/fields.h"
#include "query/structures.h"
#include "query/token.h"
#include "query/vocabulary.h"

namespace clew::query {
namespace {

constexpr std::array<std::string_view, 7> kTextFunctions = {"str", "str16",          "str32", "buf",
                                                            "ip",  "socket_address", "print"};

// Values of vocabularies within each other.
constexpr unsigned kDefinitionsMax = 8;

// The most text that a path of a struct sockaddr_un has.
constexpr size_t kSocketAddressTextBytes = 128;
constexpr size_t kAddressTextBytes = 46;  // INET6_ADDRSTRLEN

std::optional<uint32_t> unit_of(std::string_view name) {
  if (same_word(name, "str") || same_word(name, "buf")) return 1;
  if (same_word(name, "str16")) return 2;
  if (same_word(name, "str32")) return 4;
  return std::nullopt;
}

// The bytes that are there of those that were read.
Expression cut_to(Expression bytes, Expression length, Span span) {
  const Type type = bytes.type;
  return call(Function::Cut, type, {std::move(bytes), std::move(length)}, span);
}

}  // namespace

std::span<const std::string_view> text_functions() {
  return kTextFunctions;
}

Expected<std::optional<Value>> Evaluator::text_function(const SyntaxExpression& syntax,
                                                        std::string_view name) {
  if (unit_of(name)) return CLEW_TRY(read_text(syntax, name));
  if (same_word(name, "ip")) return scalar_value(CLEW_TRY(internet_address(syntax)));
  if (same_word(name, "socket_address")) return scalar_value(CLEW_TRY(socket_address(syntax)));
  if (same_word(name, "print")) return scalar_value(CLEW_TRY(printed(syntax)));
  // The user's own functions come first.
  if (build_.environment.vocabulary == nullptr || find_extension(name) != nullptr)
    return std::nullopt;
  const size_t count = syntax.kids.size() - 1;
  const ValueDefinition* const found = build_.environment.vocabulary->find_value(name, count);
  if (found == nullptr) return std::nullopt;
  if (!found->members.empty()) return std::nullopt;
  CLEW_TRY(check_count(syntax, found->parameters.size(), found->parameters.size()));
  std::vector<NamedValue> arguments;
  for (size_t i = 0; i < count; ++i) {
    Value argument = CLEW_TRY(evaluate(syntax.kids[i + 1]));
    arguments.push_back({.name = found->parameters[i], .value = std::move(argument)});
  }
  return CLEW_TRY(defined_value(*found, std::move(arguments), syntax.span));
}

// The expression of a vocabulary, over its parameters alone.
Expected<Value> Evaluator::defined_value(const ValueDefinition& definition,
                                         std::vector<NamedValue> arguments, Span span) {
  if (definitions_ == kDefinitionsMax)
    return fail(span, fmt::format("the value '{}' is defined by itself", definition.name));
  Evaluator inner(build_, arguments);
  inner.definitions_ = definitions_ + 1;
  inner.fixed_span_ = at(span);
  inner.context_ = fmt::format("in value '{}'", definition.name);
  return inner.evaluate(definition.expression);
}

// --- text and bytes ------------------------------------------------------------------------------

CTypeRef Evaluator::record_of(const Value& value) {
  const CTypeInfo type = build_.types.describe(value.c_type);
  return type.kind == CKind::Pointer ? type.target : value.c_type;
}

// "vec.len": a member, and a member of that.
bool Evaluator::has_member(CTypeRef record, std::string_view path) {
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    const std::vector<CMember> members = build_.types.members(record);
    const auto found = std::find_if(members.begin(), members.end(),
                                    [name](const CMember& member) { return member.name == name; });
    if (found == members.end()) return false;
    record = foreign(found->type);
  }
  return true;
}

Expected<std::optional<Value>> Evaluator::text_of_record(const Value& value, Span span) {
  const bool has_type = value.kind == Value::Kind::Scalar || value.kind == Value::Kind::Place ||
                        value.kind == Value::Kind::Registers;
  if (!has_type) return std::nullopt;
  const CTypeRef record = record_of(value);
  const bool is_record = build_.types.describe(record).kind == CKind::Record;
  if (!is_record || build_.environment.vocabulary == nullptr) return std::nullopt;
  for (const ValueDefinition& definition : build_.environment.vocabulary->values()) {
    const auto is_there = [&](const std::string& path) { return has_member(record, path); };
    const bool fits = !definition.members.empty() &&
                      std::all_of(definition.members.begin(), definition.members.end(), is_there);
    if (!fits) continue;
    return CLEW_TRY(
        defined_value(definition, {{.name = definition.parameters[0], .value = value}}, span));
  }
  return std::nullopt;
}

// The bytes of another struct are no text; only a member of it can be.
Expected<void> Evaluator::refuse_record(const Value& value, Span span) {
  const CTypeInfo record = build_.types.describe(record_of(value));
  if (record.kind != CKind::Record) return {};
  return fail(span, fmt::format("'{}' is a struct, not a text; choose a member or an element",
                                record.name));
}

// str(p), str(p, n), str(p, length), str(p, length, n); of wide characters str16 and str32, and so
// what a pointer to such is given to; buf(p, n), …
Expected<Value> Evaluator::read_text(const SyntaxExpression& syntax, std::string_view name) {
  const bool is_text = !same_word(name, "buf");
  CLEW_TRY(check_count(syntax, is_text ? 1 : 2, 3));
  const Span span = syntax.kids[1].span;
  Value pointer = CLEW_TRY(evaluate(syntax.kids[1]));
  const bool is_string_already =
      pointer.kind == Value::Kind::Scalar && pointer.expression.type.kind == TypeKind::String;
  if (is_string_already) {
    return fail(span, fmt::format("this is a string already; '{}' needs a pointer", name));
  }
  if (is_text && syntax.kids.size() == 2) {
    if (std::optional<Value> text = CLEW_TRY(text_of_record(pointer, span)))
      return *std::move(text);
  }
  if (is_text) CLEW_TRY(refuse_record(pointer, span));
  uint32_t unit_bytes = *unit_of(name);
  const CTypeInfo character = build_.types.describe(build_.types.describe(pointer.c_type).target);
  const bool is_wide = character.is_character && character.size_bytes > 1;
  if (same_word(name, "str") && is_wide) unit_bytes = static_cast<uint32_t>(character.size_bytes);
  Expression address = CLEW_TRY(address_of_value(std::move(pointer), span));
  return read_units(syntax, std::move(address), unit_bytes, is_text);
}

// A constant behind the pointer is the size of what is read; what is computed is the length of the
// text, and the size may stand behind it.
Expected<Value> Evaluator::read_units(const SyntaxExpression& syntax, Expression address,
                                      uint32_t unit_bytes, bool is_text) {
  std::optional<Expression> length;
  std::optional<int64_t> size;
  if (syntax.kids.size() == 4) size = CLEW_TRY(constant_of(syntax.kids[3], "the size"));
  if (syntax.kids.size() > 2) {
    Expression given = CLEW_TRY(number(syntax.kids[2]));
    if (!is_integer(given)) return fail(syntax.kids[2].span, "the length is an integer");
    if (given.kind == ExpressionKind::Integer && !size) {
      size = given.integer;
    } else {
      length = convert(std::move(given), kInt64);
    }
  }
  TextSizes& sizes = build_.limits.text;
  if (!size) sizes.are_used = true;
  const auto most = static_cast<int64_t>(kStringMaxBytes / unit_bytes);
  const int64_t units = size.value_or(sizes.usual_bytes / unit_bytes);
  const int64_t least = is_text && unit_bytes == 1 ? kStringMinBytes : 1;
  if (units < least || units > most) {
    return fail(syntax.kids.back().span, fmt::format("the size is from {} to {} {}", least, most,
                                                     unit_bytes == 1 ? "bytes" : "characters"));
  }
  Expression read;
  read.kind = is_text && unit_bytes == 1 ? ExpressionKind::ReadString : ExpressionKind::ReadBytes;
  read.type = string_type(static_cast<size_t>(units) * unit_bytes);
  if (read.kind == ExpressionKind::ReadBytes) read.type.kind = TypeKind::Bytes;
  read.span = at(syntax.span);
  read.operands.push_back(std::move(address));
  if (length && unit_bytes != 1) {
    length = CLEW_TRY(make_binary(build_.report, BinaryOperator::Multiply,
                                  {*length, integer_constant(unit_bytes, kInt64, at(syntax.span))},
                                  at(syntax.span)));
  }
  if (length) read.operands.push_back(*length);
  if (read.kind == ExpressionKind::ReadString) return scalar_value(std::move(read));
  if (!length && is_text) read.index = 1;
  if (length) read = cut_to(std::move(read), *std::move(length), at(syntax.span));
  if (!is_text) return scalar_value(std::move(read));
  constexpr size_t kUtf8BytesMax = 3;  // Of 2 bytes of UTF-16; of 4 bytes there are no more.
  const size_t text_bytes = static_cast<size_t>(units) * (unit_bytes == 2 ? kUtf8BytesMax : 4) + 1;
  Expression text =
      call(Function::WideText, string_type(text_bytes), {std::move(read)}, at(syntax.span));
  text.index = static_cast<uint16_t>(unit_bytes);
  return scalar_value(std::move(text));
}

// --- addresses -----------------------------------------------------------------------------------

// socket_address(bytes, path): what vocabularies make of a struct sockaddr.
Expected<Expression> Evaluator::socket_address(const SyntaxExpression& syntax) {
  CLEW_TRY(check_count(syntax, 2, 2));
  std::vector<Expression> operands = CLEW_TRY(operands_of(syntax));
  const bool fits =
      operands[0].type.kind == TypeKind::Bytes && operands[1].type.kind == TypeKind::String;
  if (!fits) {
    return fail(syntax.span, "'socket_address' needs bytes and a string; sockaddr(p) reads both");
  }
  return call(Function::SocketAddress, string_type(kSocketAddressTextBytes), std::move(operands),
              at(syntax.span));
}

// print(*p), print(p->member): all of what lies there.
Expected<Expression> Evaluator::printed(const SyntaxExpression& syntax) {
  CLEW_TRY(check_count(syntax, 1, 1));
  const Span span = syntax.kids[1].span;
  Value value = CLEW_TRY(evaluate(syntax.kids[1]));
  const CTypeInfo type = build_.types.describe(value.c_type);
  if (value.kind != Value::Kind::Place) {
    const bool is_pointer = type.kind == CKind::Pointer;
    return fail(span, fmt::format("'print' shows a struct or an array that lies in memory{}",
                                  is_pointer ? "; put '*' in front of the pointer" : ""));
  }
  if (type.size_bytes == 0) return fail(span, "the size of what is printed is not known");
  Structure structure = structure_of(build_.types, value.c_type);
  std::vector<Structure>& all = build_.query.structures;
  auto found = std::find(all.begin(), all.end(), structure);
  if (found == all.end()) found = all.insert(all.end(), std::move(structure));
  Expression bytes;
  bytes.kind = ExpressionKind::ReadBytes;
  bytes.type = string_type(std::min<uint64_t>(type.size_bytes, kStringMaxBytes));
  bytes.type.kind = TypeKind::Bytes;
  bytes.span = at(syntax.span);
  bytes.operands.push_back(convert(std::move(value.expression), kAddress));
  const Type shown = bytes.type;
  Expression print = call(Function::Print, shown, {std::move(bytes)}, at(syntax.span));
  print.index = static_cast<uint16_t>(found - all.begin());
  return print;
}

// ip(x): of an integer of 4 bytes or of 4 or 16 bytes, in network order.
Expected<Expression> Evaluator::internet_address(const SyntaxExpression& syntax) {
  CLEW_TRY(check_count(syntax, 1, 1));
  Value value = CLEW_TRY(evaluate(syntax.kids[1]));
  Expression address;
  const CTypeInfo type = build_.types.describe(value.c_type);
  const bool is_place =
      value.kind == Value::Kind::Place && (type.size_bytes == 4 || type.size_bytes == 16);
  if (is_place) {  // struct in_addr, struct in6_addr
    address.kind = ExpressionKind::ReadBytes;
    address.type = string_type(type.size_bytes);
    address.type.kind = TypeKind::Bytes;
    address.span = at(syntax.span);
    address.operands.push_back(std::move(value.expression));
  } else {
    address = CLEW_TRY(to_scalar(std::move(value), syntax.kids[1].span));
  }
  const uint16_t size = address.type.capacity_bytes;
  const bool is_bytes = address.type.kind == TypeKind::Bytes && (size == 4 || size == 16);
  if (!is_bytes && !is_integer(address)) {
    return fail(syntax.kids[1].span,
                fmt::format("'ip' needs an integer, or 4 or 16 bytes, not {}; read them with "
                            "buf(p, 4)",
                            name_of(address.type)));
  }
  if (!is_bytes) address = convert(std::move(address), kUint32);
  return call(Function::Address, string_type(kAddressTextBytes), {std::move(address)},
              at(syntax.span));
}

}  // namespace clew::query
