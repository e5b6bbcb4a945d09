// SPDX-License-Identifier: Apache-2.0
// Formats against the values or keys that they print: printf, printa, system, freopen.
#include <optional>

#include <fmt/format.h>

#include "query/d/check_conversion.h"
#include "query/d/check_expression.h"
#include "query/d/check_statement.h"
#include "query/d/parse_format.h"

namespace clew::query::d::checking {
namespace {

// What a conversion takes, in the words of messages.
enum class Takes : uint8_t { Integer, Character, Float, Address, Text, WideText, Stack, Time };

Takes taken_by(const FormatPart& part) {
  const std::string& name = part.conversion;
  if (name == "s" || name == "S") return Takes::Text;
  if (name == "ws") return Takes::WideText;
  if (name == "a" || name == "A" || name == "p") return Takes::Address;
  if (name == "e" || name == "E" || name == "f" || name == "g" || name == "G") return Takes::Float;
  if (name == "k") return Takes::Stack;
  if (name == "c" || name == "C") return Takes::Character;
  if (name == "Y" || name == "T") return Takes::Time;
  return Takes::Integer;
}

std::string_view text_of(Takes takes) {
  switch (takes) {
    case Takes::Integer:
      return "char, short, int, long, or long long";
    case Takes::Character:
      return "char, short, or int";
    case Takes::Float:
      return "float, double, or long double";
    case Takes::Address:
      return "pointer or integer";
    case Takes::Text:
      return "char [] or string (or use stringof)";
    case Takes::WideText:
      return "wchar_t []";
    case Takes::Stack:
      return "stack";
    case Takes::Time:
      return "int64_t";
  }
  return "";
}

bool is_float(const TypeTable& types, TypeId type) {
  return type != kNoType && types.stripped(type).kind == TypeKind::Float;
}

bool is_element(const TypeTable& types, TypeId type, uint64_t size_bytes) {
  if (type == kNoType || types.stripped(type).kind != TypeKind::Array) return false;
  const TypeId element = types.stripped(type).target;
  return types.is_integer(element) && types.size_of(element) == size_bytes;
}

// A prefix of the length binds a conversion to the integers of that length; x and X take either
// sign of them.
struct Length {
  std::string_view name;
  uint64_t size_bytes;
};

std::optional<Length> length_of(const FormatPart& part) {
  if (part.length == "h") return Length{"short", 2};
  if (part.length == "l") return Length{"long", 8};
  if (part.length == "ll") return Length{"long long", 8};
  return std::nullopt;
}

bool is_hexadecimal(const FormatPart& part) {
  return part.conversion == "x" || part.conversion == "X";
}

bool is_signed_conversion(const FormatPart& part) {
  return part.conversion == "d" || part.conversion == "i";
}

bool fits_integer(const TypeTable& types, TypeId type, const FormatPart& part) {
  const auto length = length_of(part);
  if (!types.is_integer(type) || !length) return types.is_integer(type);
  const bool is_sign = is_hexadecimal(part) || types.is_signed(type) == is_signed_conversion(part);
  return types.size_of(type) == length->size_bytes && is_sign;
}

// Does a value (or key) of this type go with the conversion?
bool fits(const TypeTable& types, TypeId type, const FormatPart& part) {
  if (type == kNoType) return false;
  switch (taken_by(part)) {
    case Takes::Integer:
      return fits_integer(types, type, part);
    case Takes::Character:
      return types.is_integer(type) && types.size_of(type) <= 4;
    case Takes::Float:
      return is_float(types, type);
    case Takes::Address:
      return types.is_integer(type) || types.is_pointer(type) || is_dynamic(types, type);
    case Takes::Text:
      return types.is_string(type) || is_element(types, type, 1);
    case Takes::WideText:
      return is_element(types, type, 4);
    case Takes::Stack:
      return is_dynamic(types, type);
    case Takes::Time:
      return types.is_integer(type) && types.size_of(type) == 8;
  }
  return false;
}

std::string prototype_of(const FormatPart& part) {
  const auto length = taken_by(part) == Takes::Integer ? length_of(part) : std::nullopt;
  if (!length) return std::string(text_of(taken_by(part)));
  const bool is_plain = is_hexadecimal(part) || is_signed_conversion(part);
  return (is_plain ? "" : "unsigned ") + std::string(length->name);
}

std::string shown_conversion(const FormatPart& part) {
  return part.length + part.conversion;
}

// Walks the conversions of one format and the values that they take.
struct Matching {
  Context& context;
  Node& call;
  uint32_t conversion = 0;  // Counts from 1.
  uint32_t argument = 0;    // Next in call.operands.
  uint32_t skipped = 0;     // Arguments in front of them, for numbers in messages.

  [[nodiscard]] Failure error(std::string_view tag, std::string message) const {
    return error_at(call, std::string(tag), fmt::format("{}( ) {}", call.name, message));
  }
};

Compiled<void> match_dynamic(Matching& matching, const FormatPart& part, std::string_view symbol) {
  TypeTable& types = matching.context.types();
  if (matching.argument >= matching.call.operands.size()) {
    return matching.error("D_PRINTF_DYN_PROTO",
                          fmt::format("prototype mismatch: conversion #{} (%{}) is missing a "
                                      "corresponding \"{}\" argument",
                                      matching.conversion, shown_conversion(part), symbol));
  }
  Node& value = matching.call.operands[matching.argument++];
  if (value.kind != NodeKind::Aggregation && types.is_integer(value.type)) {
    convert(types, value, types.integer(4, true));
    return {};
  }
  return matching.error("D_PRINTF_DYN_TYPE",
                        fmt::format("argument #{} is incompatible with conversion #{} "
                                    "prototype:\n\tconversion: % {} {}\n\t prototype: int\n\t  "
                                    "argument: {}",
                                    matching.skipped + matching.argument, matching.conversion,
                                    symbol, shown_conversion(part), shown_type(types, value)));
}

Compiled<void> match_value(Matching& matching, const FormatPart& part) {
  TypeTable& types = matching.context.types();
  if (matching.argument >= matching.call.operands.size()) {
    return matching.error("D_PRINTF_ARG_PROTO",
                          fmt::format("prototype mismatch: conversion #{} (%{}) is missing a "
                                      "corresponding value argument",
                                      matching.conversion, shown_conversion(part)));
  }
  Node& value = matching.call.operands[matching.argument++];
  if (value.kind == NodeKind::Aggregation || !fits(types, value.type, part)) {
    return matching.error(
        "D_PRINTF_ARG_TYPE",
        fmt::format("argument #{} is incompatible with conversion #{} prototype:\n\tconversion: "
                    "%{}\n\t prototype: {}\n\t  argument: {}",
                    matching.skipped + matching.argument, matching.conversion,
                    shown_conversion(part), prototype_of(part), shown_type(types, value)));
  }
  if (taken_by(part) == Takes::Text) convert_to_string(types, value);
  if (taken_by(part) == Takes::Address) decay(types, value);
  return {};
}

Compiled<void> match_part(Matching& matching, const FormatPart& part) {
  ++matching.conversion;
  if (part.is_aggregation) {
    return error_at(matching.call, "D_PRINTF_AGG_CONV",
                    fmt::format("%@ conversion requires an aggregation and is not for use with "
                                "{}( )",
                                matching.call.name));
  }
  if (part.has_dynamic_width) CLEW_TRY(match_dynamic(matching, part, "*"));
  if (part.has_dynamic_precision) CLEW_TRY(match_dynamic(matching, part, ".*"));
  return match_value(matching, part);
}

Failure no_format(Context& context, const Node& call) {
  return error_at(call, "D_PRINTF_ARG_FMT",
                  fmt::format("{}( ) argument #1 is incompatible with prototype:\n\tprototype: "
                              "string constant\n\t argument: {}",
                              call.name, shown_type(context.types(), call.operands[0])));
}

// freopen("") goes back to where output went first; to "." it cannot go.
Compiled<void> check_text(const Node& call) {
  const Node& format = call.operands[0];
  const bool is_reopening = find_action(call.name) == Action::Freopen;
  if (is_reopening && format.text == ".") {
    return error_at(format, "D_FREOPEN_INVALID", "freopen( ) argument #1 cannot be \".\"");
  }
  if (!format.text.empty() || is_reopening) return {};
  return error_at(format, "D_PRINTF_FMT_EMPTY",
                  fmt::format("{}( ) format string is empty", call.name));
}

// Takes the format out of the call.
Compiled<Format> take_format(Context& context, Statement& statement) {
  Node& call = statement.expression;
  Node format_text = std::move(call.operands[0]);
  call.operands.erase(call.operands.begin());
  Format format = CLEW_TRY(parse_format(format_text.text, format_text.line, format_text.span));
  statement.format = static_cast<uint32_t>(context.script.formats.size());
  context.script.formats.push_back(format);
  return format;
}

// --- printa --------------------------------------------------------------------------------------

std::string counted_keys(const Aggregation& aggregation) {
  const size_t count = aggregation.keys.size();
  return fmt::format("@{} has {} key{}", aggregation.name, count, count == 1 ? "" : "s");
}

std::string shown_key(const TypeTable& types, const Aggregation& aggregation, size_t key) {
  const Action action = aggregation.key_actions[key].action;
  return fmt::format(
      "{:>9} key #{}: {}", aggregation.name, key + 1,
      action == Action::None ? types.name_of(aggregation.keys[key]) : std::string(name_of(action)));
}

bool is_same_key(const TypeTable& types, const Aggregation& a, const Aggregation& b, size_t key) {
  if (a.key_actions[key].action != b.key_actions[key].action) return false;
  return is_same(types, a.keys[key], b.keys[key]) ||
         (types.is_integer(a.keys[key]) && types.is_integer(b.keys[key]) &&
          types.size_of(a.keys[key]) == types.size_of(b.keys[key]));
}

Compiled<void> check_same_keys(const Context& context, const Node& call, const Aggregation& a,
                               const Aggregation& b) {
  const TypeTable& types = context.script.types;
  if (a.keys.size() != b.keys.size()) {
    return error_at(call, "D_PRINTA_AGGKEY",
                    fmt::format("printa( ): @{} and @{} do not have matching key signatures: {}, "
                                "{}",
                                a.name, b.name, counted_keys(a), counted_keys(b)));
  }
  for (size_t i = 0; i < a.keys.size(); ++i) {
    if (is_same_key(types, a, b, i)) continue;
    return error_at(
        call, "D_PRINTA_AGGPROTO",
        fmt::format("printa( ): @{}[ ] key #{} is incompatible with @{}:\n{}\n{}", b.name, i + 1,
                    a.name, shown_key(types, a, i), shown_key(types, b, i)));
  }
  return {};
}

Failure key_missing(const Node& call, uint32_t conversion, const FormatPart& part) {
  return error_at(call, "D_PRINTF_ARG_PROTO",
                  fmt::format("printa( ) prototype mismatch: conversion #{} (%{}) is missing a "
                              "corresponding value argument",
                              conversion, shown_conversion(part)));
}

// `what` is a key, or the aggregation's value.
Failure key_mismatch(const Node& call, uint32_t conversion, const FormatPart& part,
                     const std::array<std::string, 2>& what_and_type) {
  return error_at(call, "D_PRINTF_ARG_TYPE",
                  fmt::format("printa( ) {} is incompatible with conversion #{} prototype:\n"
                              "\tconversion: %{}\n\t prototype: {}\n\t  argument: {}",
                              what_and_type[0], conversion, shown_conversion(part),
                              prototype_of(part), what_and_type[1]));
}

// Conversions without @ take the keys from left to right; fewer of them than keys is fine.
Compiled<void> match_keys(Context& context, const Node& call, const Format& format,
                          const Aggregation& aggregation) {
  const TypeTable& types = context.types();
  size_t key = 0;
  uint32_t conversion = 0;
  for (const FormatPart& part : format.parts) {
    if (!part.has_conversion) continue;
    ++conversion;
    key += (part.has_dynamic_width ? 1U : 0U) + (part.has_dynamic_precision ? 1U : 0U);
    if (part.is_aggregation && taken_by(part) == Takes::Text)
      return key_mismatch(call, conversion, part, {"aggregating action", "int64_t"});
    if (part.is_aggregation) continue;
    if (key >= aggregation.keys.size()) return key_missing(call, conversion, part);
    const TypeId type = aggregation.keys[key];
    // Stacks and symbols are printed by %k, %a, %A and, as text, by %s.
    const bool is_special = is_dynamic(types, type) && taken_by(part) == Takes::Text;
    if (!is_special && !fits(types, type, part)) {
      return key_mismatch(call, conversion, part,
                          {fmt::format("argument #{}", key + 2), types.name_of(type)});
    }
    ++key;
  }
  return {};
}

Compiled<void> take_aggregations(Context& context, Statement& statement, size_t first) {
  Node& call = statement.expression;
  for (size_t i = first; i < call.operands.size(); ++i) {
    const uint32_t index = CLEW_TRY(named_aggregation(context, call, i, "D_PRINTA_"));
    const auto& all = context.script.aggregations;
    if (i > first)
      CLEW_TRY(check_same_keys(context, call, all[statement.aggregations[0]], all[index]));
    statement.aggregations.push_back(index);
  }
  statement.aggregation = statement.aggregations[0];
  return {};
}

}  // namespace

Compiled<void> check_printf(Context& context, Statement& statement) {
  Node& call = statement.expression;
  if (call.operands.empty()) {
    return error_at(
        call, "D_PROTO_LEN",
        fmt::format("{}( ) prototype mismatch: 0 args passed, at least 1 expected", call.name));
  }
  for (Node& operand : call.operands)
    CLEW_TRY(check_value(context, operand));
  if (call.operands[0].kind != NodeKind::String) return no_format(context, call);
  CLEW_TRY(check_text(call));
  const Format format = CLEW_TRY(take_format(context, statement));
  Matching matching{context, call, 0, 0, 1};
  for (const FormatPart& part : format.parts) {
    if (part.has_conversion) CLEW_TRY(match_part(matching, part));
  }
  if (matching.argument == call.operands.size()) return {};
  return matching.error("D_PRINTF_ARG_EXTRA",
                        fmt::format("prototype mismatch: only {} arguments required by this format "
                                    "string",
                                    matching.argument));
}

Compiled<void> check_printa(Context& context, Statement& statement) {
  Node& call = statement.expression;
  for (Node& operand : call.operands)
    CLEW_TRY(check_value(context, operand));
  const bool has_format = !call.operands.empty() && call.operands[0].kind == NodeKind::String;
  const size_t first = has_format ? 1 : 0;
  if (call.operands.empty()) {
    return error_at(call, "D_PROTO_LEN",
                    "printa( ) prototype mismatch: 0 args passed, at least 1 expected");
  }
  if (call.operands.size() <= first) {
    return error_at(call, "D_PRINTA_PROTO",
                    "printa( ) prototype mismatch: 1 args passed, 2 expected");
  }
  CLEW_TRY(take_aggregations(context, statement, first));
  if (has_format) {
    const Format format = CLEW_TRY(take_format(context, statement));
    CLEW_TRY(match_keys(context, call, format, context.script.aggregations[statement.aggregation]));
  }
  call.operands.clear();
  return {};
}

}  // namespace clew::query::d::checking
