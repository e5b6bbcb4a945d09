// SPDX-License-Identifier: Apache-2.0
#include "query/print_expression.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "query/arithmetic.h"
#include "query/fields.h"
#include "query/parser.h"
#include "query/print.h"
#include "query/recording_fields.h"
#include "query/window.h"

namespace clew::query {
namespace {

Precedence precedence_of(const Expression& expression) {
  switch (expression.kind) {
    case ExpressionKind::Conditional:
      return Precedence::Conditional;
    case ExpressionKind::Binary:
      return precedence_of(expression.binary);
    case ExpressionKind::In:
      return Precedence::Comparison;
    case ExpressionKind::Call:
      if (expression.function == Function::IsNothing) return precedence_of(BinaryOperator::Equal);
      return expression.function == Function::Like ? Precedence::Comparison : Precedence::Primary;
    case ExpressionKind::Unary:
    case ExpressionKind::Convert:
    case ExpressionKind::Load:
    case ExpressionKind::Integer:  // It may have a sign or a cast.
    case ExpressionKind::Float:
      return Precedence::Unary;
    case ExpressionKind::String:
    case ExpressionKind::Field:
    case ExpressionKind::Input:
    case ExpressionKind::Let:
    case ExpressionKind::Value:
    case ExpressionKind::Aggregate:
    case ExpressionKind::JoinColumn:
    case ExpressionKind::ReadString:
    case ExpressionKind::ReadBytes:
      return Precedence::Primary;
  }
  return Precedence::Primary;
}

class ExpressionPrinter {
 public:
  ExpressionPrinter(const Query& query, bool is_bare) : query_(query), is_bare_(is_bare) {}

  [[nodiscard]] std::string print(const Expression& expression) const {
    switch (expression.kind) {
      case ExpressionKind::Integer:
        return integer(expression);
      case ExpressionKind::Float:
        return real(expression.real);
      case ExpressionKind::String:
        return print_string(expression.text);
      case ExpressionKind::Field:
        return field(expression);
      case ExpressionKind::Input: {
        const bool is_first = expression.stream == 0;
        const std::vector<Input>& inputs =
            is_first ? query_.inputs : query_.joins[expression.stream - 1U].inputs;
        return event(expression.stream) + input_name(inputs, expression.index);
      }
      case ExpressionKind::Let:
        return query_.lets[expression.index].name;
      case ExpressionKind::Value:
        return value(expression);
      case ExpressionKind::Aggregate:
        return aggregate(query_.aggregates[expression.index]);
      case ExpressionKind::JoinColumn:
        return join_column(expression);
      case ExpressionKind::Unary:
        return fmt::format("{}{}", symbol_of(expression.unary), unary_operand(expression));
      case ExpressionKind::Binary:
        return binary(expression);
      case ExpressionKind::Conditional:
        return conditional(expression);
      case ExpressionKind::Convert:
        return conversion(expression);
      case ExpressionKind::Load:
        return fmt::format("*({}*){}", type_name(expression.type),
                           operand(expression.operands[0], Precedence::Primary));
      case ExpressionKind::ReadString:
        return read("str", expression);
      case ExpressionKind::ReadBytes:
        return read(is_raw(expression) ? "read" : "buf", expression);
      case ExpressionKind::Call:
        return call(expression);
      case ExpressionKind::In:
        return membership(expression);
    }
    return "";
  }

  [[nodiscard]] std::string print_key(const Expression& expression) const {
    return operand(expression, tighter(Precedence::Equality));
  }

 private:
  [[nodiscard]] std::string operand(const Expression& expression, Precedence least) const {
    const Expression& shown = shown_value(expression);
    if (precedence_of(shown) >= least) return print(expression);
    return fmt::format("({})", print(expression));
  }

  // `- -x` must not become `--x`, which C reads otherwise.
  [[nodiscard]] std::string unary_operand(const Expression& expression) const {
    const Expression& inner = shown_value(expression.operands[0]);
    const bool is_sign = inner.kind == ExpressionKind::Unary ||
                         inner.kind == ExpressionKind::Integer ||
                         inner.kind == ExpressionKind::Float;
    return operand(expression.operands[0], is_sign ? Precedence::Primary : Precedence::Unary);
  }

  // A Value prints as the expression that it stands for, where it has no name.
  [[nodiscard]] const Expression& shown_value(const Expression& expression) const {
    if (expression.kind != ExpressionKind::Value) return expression;
    return query_.values[expression.index].expression;
  }

  [[nodiscard]] std::string value(const Expression& expression) const {
    if (query_.window && expression.index == kPaneValue) return "window.start";
    return print(query_.values[expression.index].expression);
  }

  [[nodiscard]] std::string event(uint16_t stream) const {
    if (is_bare_) return "";
    return stream == 0 ? "e." : query_.joins[stream - 1U].name + ".";
  }

  [[nodiscard]] std::string field(const Expression& expression) const {
    const bool is_argument =
        expression.field == Field::Argument || expression.field == Field::EntryArgument;
    if (is_argument && is_recorded(expression.stream)) {
      return event(expression.stream) + std::string(recording_fields()[expression.index].name);
    }
    const bool is_real = expression.type.kind == TypeKind::Float;
    std::string name(info(expression.field).name);
    if (is_argument) name = argument_name(expression.field, expression.index);
    if (is_real && expression.field == Field::ReturnValue) name = "xmm0";
    if (is_real && expression.type.size_bytes == 4) name += "f";
    const unsigned frames = expression.type.capacity_bytes / 8U;
    if (expression.type.kind == TypeKind::Stack && frames != kStackFramesDefault) {
      name += fmt::format("({})", frames);
    }
    return event(expression.stream) + name;
  }

  [[nodiscard]] bool is_recorded(uint16_t stream) const {
    return stream == 0 && !query_.sources.empty() &&
           query_.sources[0].kind == SourceKind::Recording;
  }

  [[nodiscard]] std::string join_column(const Expression& expression) const {
    const Join& join = query_.joins[expression.stream - 1U];
    const std::vector<NamedExpression>& columns = join.subquery[0].columns;
    return fmt::format("{}[{}]", join.name, print_string(columns[expression.index].name));
  }

  [[nodiscard]] std::string conversion(const Expression& expression) const {
    const Expression& inner = shown_value(expression.operands[0]);
    const bool is_sign = inner.kind == ExpressionKind::Unary ||
                         inner.kind == ExpressionKind::Load ||
                         (inner.kind == ExpressionKind::Integer && inner.integer < 0) ||
                         (inner.kind == ExpressionKind::Float && inner.real < 0);
    const bool is_bare_name = is_enumeration_name(expression.type);
    const Precedence least = is_sign && is_bare_name ? Precedence::Primary : Precedence::Unary;
    return fmt::format("({}){}", type_name(expression.type),
                       operand(expression.operands[0], least));
  }

  // A name that the parser cannot tell from a value's: a sign must not follow it.
  [[nodiscard]] bool is_enumeration_name(const Type& type) const {
    return type.kind == TypeKind::Symbol ||
           (type.enumeration != 0 && type.unit != Unit::Address && has_readable_name(type));
  }

  // Names of enumerations in templates, and those without a name, are not read again.
  [[nodiscard]] bool has_readable_name(const Type& type) const {
    const std::string& name = query_.enumerations[type.enumeration - 1U].name;
    const bool is_word = std::all_of(name.begin(), name.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':' || c == ' ';
    });
    return is_word && !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0;
  }

  [[nodiscard]] std::string type_name(const Type& type) const {
    if (type.kind == TypeKind::Symbol) return "symbol";
    if (type.kind == TypeKind::Float) return type.size_bytes == 4 ? "float" : "double";
    if (type.unit == Unit::Address) return "void*";
    if (type.enumeration != 0 && is_enumeration_name(type))
      return query_.enumerations[type.enumeration - 1U].name;
    return fmt::format("{}int{}_t", type.is_signed ? "" : "u", type.size_bytes * 8);
  }

  [[nodiscard]] std::string integer(const Expression& expression) const {
    const Type& type = expression.type;
    const bool is_plain = type.enumeration == 0 && type.unit != Unit::Address;
    const bool is_duration = type.unit == Unit::Nanoseconds && type == Type{.unit = type.unit};
    if (is_duration && expression.integer >= 0) return print_duration_exactly(expression.integer);
    const bool is_least = expression.integer == INT64_MIN || expression.integer == INT32_MIN;
    const bool is_literal =
        is_plain && type.size_bytes >= 4 && !is_least && !is_duration && type.unit == Unit::None;
    if (is_literal) return literal(expression.integer, type);
    Type wide = type.is_signed ? kInt64 : kUint64;
    if (is_least && is_plain && !is_duration) wide = kUint64;
    const std::string text = literal(expression.integer, wide);
    const bool is_sign = text[0] == '-' && is_enumeration_name(type);
    return fmt::format("({}){}", type_name(type), is_sign ? fmt::format("({})", text) : text);
  }

  static std::string print_duration_exactly(int64_t ns) {
    return print_duration(static_cast<uint64_t>(ns));
  }

  static std::string literal(int64_t value, const Type& type) {
    if (!type.is_signed) {
      return fmt::format("{}{}", static_cast<uint64_t>(value), type.size_bytes == 8 ? "ul" : "u");
    }
    return fmt::format("{}{}", value, type.size_bytes == 8 ? "l" : "");
  }

  static std::string real(double value) {
    if (std::isnan(value)) return "(0.0 / 0.0)";
    if (std::isinf(value)) return value > 0 ? "(1.0 / 0.0)" : "(-1.0 / 0.0)";
    std::string text = fmt::format("{}", value);
    const bool is_integer = text.find_first_of(".e") == std::string::npos;
    return is_integer ? text + ".0" : text;
  }

  [[nodiscard]] std::string binary(const Expression& expression) const {
    const Precedence own = precedence_of(expression.binary);
    // The right operand of equal precedence needs parentheses: operators associate to the left.
    return fmt::format("{} {} {}", operand(expression.operands[0], own),
                       symbol_of(expression.binary), operand(expression.operands[1], tighter(own)));
  }

  [[nodiscard]] std::string conditional(const Expression& expression) const {
    return fmt::format("{} ? {} : {}", operand(expression.operands[0], Precedence::LogicalOr),
                       operand(expression.operands[1], Precedence::LogicalOr),
                       operand(expression.operands[2], Precedence::LogicalOr));
  }

  [[nodiscard]] std::string read(std::string_view name, const Expression& expression,
                                 uint32_t unit_bytes = 1) const {
    std::string arguments = print(expression.operands[0]);
    if (expression.operands.size() == 2)
      arguments += ", " + length(expression.operands[1], unit_bytes);
    return fmt::format("{}({}, {})", name, arguments, expression.type.capacity_bytes / unit_bytes);
  }

  // What only a call around it knows to read: a query has no name for it.
  static bool is_raw(const Expression& bytes) {
    return bytes.operands.size() == 2 || bytes.index != 0;
  }

  // In units of so many bytes.
  [[nodiscard]] std::string length(const Expression& length, uint32_t unit_bytes) const {
    if (unit_bytes == 1) return print(length);
    if (length.kind != ExpressionKind::Integer) return print(length.operands[0]);
    return literal(length.integer / unit_bytes, length.type);
  }

  // What is made of bytes that are read just for it prints as the call that makes both.
  [[nodiscard]] std::string shown_bytes(const Expression& call) const {
    const Expression& bytes = shown_value(call.operands[0]);
    if (call.function == Function::WideText) {
      const Expression& units = bytes.kind == ExpressionKind::ReadBytes ? bytes : bytes.operands[0];
      return read(call.index == 2 ? "str16" : "str32", units, call.index);
    }
    if (call.function == Function::Cut) return read("buf", bytes);
    return fmt::format("print(*({}*){})", query_.structures[call.index].name,
                       operand(bytes.operands[0], Precedence::Unary));
  }

  [[nodiscard]] std::string call(const Expression& expression) const {
    if (expression.function == Function::Like) {
      return fmt::format("{} like {}", operand(expression.operands[0], Precedence::Shift),
                         print(expression.operands[1]));
    }
    if (expression.function == Function::IsNothing) {
      const Precedence least = tighter(precedence_of(BinaryOperator::Equal));
      return fmt::format("{} == null", operand(expression.operands[0], least));
    }
    const bool is_of_bytes = expression.function == Function::WideText ||
                             expression.function == Function::Cut ||
                             expression.function == Function::Print;
    if (is_of_bytes) return shown_bytes(expression);
    std::string arguments;
    for (const Expression& each : expression.operands) {
      if (!arguments.empty()) arguments += ", ";
      arguments += print(each);
    }
    const bool is_extension = expression.function == Function::Extension;
    return fmt::format("{}({})", is_extension ? expression.text : name_of(expression.function),
                       arguments);
  }

  [[nodiscard]] std::string membership(const Expression& expression) const {
    std::string values;
    for (size_t i = 1; i < expression.operands.size(); ++i) {
      if (!values.empty()) values += ", ";
      values += print(expression.operands[i]);
    }
    return fmt::format("{} in ({})", operand(expression.operands[0], Precedence::Shift), values);
  }

  [[nodiscard]] std::string aggregate(const Aggregate& aggregate) const {
    std::string arguments;
    for (const Expression& argument : aggregate.arguments) {
      arguments += print(argument);
    }
    for (const int64_t parameter : aggregate.parameters) {
      arguments += fmt::format(", {}", parameter);
    }
    if (aggregate.function == AggregateFunction::Quantile) {
      arguments += fmt::format(", {}", aggregate.fraction);
    }
    return fmt::format("{}({})", name_of(aggregate.function), arguments);
  }

  const Query& query_;
  bool is_bare_;
};

}  // namespace

std::string print_expression(const Expression& expression, const Query& query) {
  return ExpressionPrinter(query, false).print(expression);
}

std::string print_join_key(const Expression& expression, const Query& query) {
  return ExpressionPrinter(query, false).print_key(expression);
}

std::string print_outstanding_key(const Expression& expression, const Query& query) {
  return ExpressionPrinter(query, true).print_key(expression);
}

std::string print_bare(const Expression& expression, const Query& query) {
  return ExpressionPrinter(query, true).print(expression);
}

std::string print_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + "\"";
}

// Inputs may have equal names, or names that are no names; then they are numbered.
std::string input_name(const std::vector<Input>& inputs, size_t index) {
  const std::string& name = inputs[index].name;
  bool is_good = !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0;
  for (const char c : name) {
    is_good = is_good && (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_');
  }
  const auto same =
      std::count_if(inputs.begin(), inputs.end(), [&](const Input& i) { return i.name == name; });
  return is_good && same == 1 ? name : fmt::format("input{}", index);
}

std::string_view name_of(Function function) {
  switch (function) {
    case Function::Log2:
      return "log2";
    case Function::Min:
      return "min";
    case Function::Max:
      return "max";
    case Function::Abs:
      return "abs";
    case Function::Hash:
      return "hash";
    case Function::Len:
      return "len";
    case Function::Substr:
      return "substr";
    case Function::Before:
      return "before";
    case Function::Contains:
      return "contains";
    case Function::StartsWith:
      return "startswith";
    case Function::Like:
      return "like";
    case Function::Sample:
      return "sample";
    case Function::Hex:
      return "hex";
    case Function::Cut:
      return "cut";
    case Function::WideText:
      return "widetext";
    case Function::Address:
      return "ip";
    case Function::SocketAddress:
      return "socket_address";
    case Function::Print:
      return "print";
    case Function::IsNothing:
      return "isnothing";
    case Function::Extension:
      return "extension";
  }
  return "";
}

}  // namespace clew::query
