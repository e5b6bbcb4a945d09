// SPDX-License-Identifier: Apache-2.0
// The meaning of names and operators.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/assert.h"
#include "query/arithmetic.h"
#include "query/evaluator.h"
#include "query/fields.h"
#include "query/print.h"
#include "query/token.h"
#include "query/walk.h"
#include "query/window.h"

namespace clew::query {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

}  // namespace

const Value* find_member(const std::vector<NamedValue>& members, std::string_view name) {
  for (const NamedValue& member : members) {
    if (member.name == name) return &member.value;
  }
  for (const NamedValue& member : members) {
    if (same_word(member.name, name)) return &member.value;
  }
  return nullptr;
}

size_t count_nodes(const Expression& expression) {
  size_t count = 0;
  visit(expression, [&count](const Expression& /*node*/) { ++count; });
  return count;
}

tl::unexpected<Error> Evaluator::fail(Span span, std::string_view message) const {
  if (context_.empty()) return build_.report.fail(at(span), message);
  return build_.report.fail(at(span), fmt::format("{}: {}", context_, message));
}

// A short text can name an expression often, and each use copies it: the copies are counted.
Expected<void> Evaluator::charge(const Expression& expression, Span span) {
  const size_t nodes = count_nodes(expression);
  if (nodes > build_.limits.nodes) {
    return fail(span, fmt::format("this query has more than {} operations", kNodesMax));
  }
  build_.limits.nodes -= nodes;
  return {};
}

Expected<Value> Evaluator::finish(Value value, Span span) {
  value.expression.span = at(span);
  CLEW_TRY(charge(value.expression, span));
  return value;
}

Expected<Value> Evaluator::evaluate(const SyntaxExpression& syntax) {
  const SyntaxExpression* root = union_root(syntax);
  if (root != nullptr) {
    const Value event = *find(root->text);  // A copy: the scope grows.
    return per_source(syntax, root->text, event);
  }
  Value value = CLEW_TRY(evaluate_node(syntax));
  return finish(std::move(value), syntax.span);
}

Expected<Value> Evaluator::evaluate_node(const SyntaxExpression& syntax) {
  const Span span = at(syntax.span);
  const auto integer = static_cast<int64_t>(syntax.integer);
  switch (syntax.kind) {
    case SyntaxKind::Integer:
      return scalar_value(integer_constant(integer, syntax.type, span));
    case SyntaxKind::Float:
      return scalar_value(float_constant(syntax.real, span));
    case SyntaxKind::String:
      if (syntax.text.size() >= kKeyStringMaxBytes) {
        return fail(span, fmt::format("a string has at most {} bytes", kKeyStringMaxBytes - 1));
      }
      return scalar_value(string_constant(syntax.text, span));
    case SyntaxKind::Duration: {
      const Type type{.unit = Unit::Nanoseconds};
      return scalar_value(integer_constant(integer, type, span));
    }
    case SyntaxKind::Frequency:
      return fail(span, "a frequency is only for profile(…) and tick(…)");
    case SyntaxKind::Name:
      return name(syntax);
    case SyntaxKind::Member:
      return member(syntax);
    case SyntaxKind::Index:
      return index(syntax);
    case SyntaxKind::Call:
      return function_call(syntax);
    case SyntaxKind::Negate:
      return unary(syntax, UnaryOperator::Negate);
    case SyntaxKind::Plus:
      return scalar_value(CLEW_TRY(number(syntax.kids[0])));
    case SyntaxKind::Complement:
      return unary(syntax, UnaryOperator::Complement);
    case SyntaxKind::Not:
      return unary(syntax, UnaryOperator::Not);
    case SyntaxKind::Dereference:
      return dereference(syntax);
    case SyntaxKind::AddressOf:
      return address_of(syntax);
    case SyntaxKind::Binary:
      return binary(syntax);
    case SyntaxKind::Conditional:
      return conditional(syntax);
    case SyntaxKind::Cast:
      return cast(syntax);
    case SyntaxKind::In:
      return membership(syntax);
    case SyntaxKind::Like:
      return like(syntax);
    case SyntaxKind::Lambda:
      return fail(span, "a lambda is only for the methods of LINQ");
    case SyntaxKind::New:
      return record(syntax);
  }
  return fail(span, "this has no meaning");
}

// --- names ---------------------------------------------------------------------------------------

const Value* Evaluator::find(std::string_view name) const {
  for (auto candidate = scope_.rbegin(); candidate != scope_.rend(); ++candidate) {
    if (candidate->name == name) return &candidate->value;
  }
  for (auto candidate = scope_.rbegin(); candidate != scope_.rend(); ++candidate) {
    if (same_word(candidate->name, name)) return &candidate->value;
  }
  return nullptr;
}

Expected<Value> Evaluator::name(const SyntaxExpression& syntax) {
  const std::string_view text = syntax.text;
  const Span span = at(syntax.span);
  const Value* found = find(text);
  if (found != nullptr) return *found;
  if (implicit_event_) {
    const Value event = *implicit_event_;
    return event_member(event, text, span);
  }
  if (text == "Now") return value_of_kind(Value::Kind::Deadline);
  if (text == "State") return value_of_kind(Value::Kind::State);
  if (text == "true" || text == "false") {
    return scalar_value(integer_constant(text == "true" ? 1 : 0, kInt32, span));
  }
  if (same_word(text, "null")) {
    return cast_to(integer_constant(0, kUint64, span),
                   CTypeRef{.base = CTypeRef::Base::Void, .pointers = 1}, span);
  }
  if (text == "period") {
    const auto period_ns =
        static_cast<int64_t>(build_.query.every_ns.value_or(static_cast<uint64_t>(kNsPerSecond)));
    return scalar_value(integer_constant(period_ns, {.unit = Unit::Nanoseconds}, span));
  }
  if (same_word(text, "count") && aggregates_allowed_) return aggregate_call(syntax, "count");
  return fail_unknown_name(syntax);
}

tl::unexpected<Error> Evaluator::fail_unknown_name(const SyntaxExpression& syntax) {
  const std::string_view text = syntax.text;
  for (const NamedValue& candidate : scope_) {
    const bool is_event = candidate.value.kind == Value::Kind::Event && candidate.name != "end";
    const bool is_argument = text.starts_with("arg") && text.size() > 3 && text.size() < 6;
    if (is_event && (is_argument || exports(candidate.value, text))) {
      return fail(syntax.span, fmt::format("no name '{}'; a field is written with its event: "
                                           "did you mean '{}.{}'?",
                                           text, candidate.name, text));
    }
  }
  std::vector<std::string_view> names;
  for (const NamedValue& candidate : scope_) {
    names.push_back(candidate.name);
  }
  return fail(syntax.span, fmt::format("no name '{}'{}", text, did_you_mean(text, names)));
}

// --- scalars -------------------------------------------------------------------------------------

Expected<Expression> Evaluator::to_scalar(Value value, Span span) {
  switch (value.kind) {
    case Value::Kind::Scalar:
      return value.expression;
    case Value::Kind::Registers:
    case Value::Kind::Place: {
      const CTypeInfo type = build_.types.describe(value.c_type);
      const bool is_text =
          type.kind == CKind::Array && build_.types.describe(type.target).is_character;
      if (std::optional<Value> known = CLEW_TRY(text_of_record(value, span)))
        return to_scalar(*std::move(known), span);
      if (!is_text) {
        return fail(span, fmt::format("{} is not a value; choose a member or an element, or "
                                      "print(…) it",
                                      type.name.empty() ? "a struct" : "'" + type.name + "'"));
      }
      Expression text;
      text.kind = ExpressionKind::ReadString;
      TextSizes& sizes = build_.limits.text;
      sizes.are_used = true;
      const uint64_t capacity = type.count == 0 ? sizes.usual_bytes : type.count;
      text.type =
          string_type(std::clamp<uint64_t>(capacity, kStringMinBytes, sizes.array_bytes_max));
      text.span = at(span);
      text.operands.push_back(std::move(value.expression));
      return text;
    }
    case Value::Kind::Event:
      return fail(span, "an event is not a value; choose a field, such as .time or .arg0");
    case Value::Kind::Arguments:
    case Value::Kind::EntryArguments:
      return fail(span, "choose an argument by its name, such as args.size");
    case Value::Kind::Entry:
      return fail(span, "choose an argument of the entry, such as entry.arg0");
    case Value::Kind::Record:
      if (value.members.size() == 1) return to_scalar(value.members[0].value, span);
      return fail(span, fmt::format("a record of {} members is not a value; choose a member",
                                    value.members.size()));
    case Value::Kind::Group:
      return fail(span, "a group is not a value; use its Key, or an aggregate such as .Count()");
    case Value::Kind::Deadline:
      return fail(span, "Now can only bound the session: 'e.time < Now.AddMinutes(5)'");
    case Value::Kind::State:
      return fail(span, "State is only an argument of sample(…) and MovingAverage(…)");
  }
  return fail(span, "this is not a value");
}

Expected<Expression> Evaluator::scalar(const SyntaxExpression& syntax) {
  Value value = CLEW_TRY(evaluate(syntax));
  return to_scalar(std::move(value), syntax.span);
}

// A scalar that operators can take.
Expected<Expression> Evaluator::number(const SyntaxExpression& syntax) {
  Expression result = CLEW_TRY(scalar(syntax));
  if (is_histogram(result)) {
    return fail(syntax.span, "a histogram is not a number; it can only be selected");
  }
  return result;
}

Expected<Expression> Evaluator::condition(const SyntaxExpression& syntax) {
  Expression result = CLEW_TRY(number(syntax));
  if (is_integer(result)) return result;
  return fail(syntax.span, fmt::format("a condition is an integer, not {}", name_of(result.type)));
}

// --- operators -----------------------------------------------------------------------------------

// The enumerator of that name, where `other` is of an enumeration.
std::optional<Expression> Evaluator::enumerator(std::string_view name, const Expression& other,
                                                Span span) {
  if (other.type.enumeration == 0) return std::nullopt;
  const Enumeration& enumeration = build_.query.enumerations[other.type.enumeration - 1U];
  for (const Enumerator& candidate : enumeration.enumerators) {
    if (candidate.name == name) return integer_constant(candidate.value, other.type, at(span));
  }
  return std::nullopt;
}

// An operand that may be the name of an enumerator, since the other operand is of that type.
Expected<Expression> Evaluator::operand_beside(const SyntaxExpression& syntax,
                                               const Expression& other) {
  // (O_RDWR | O_CREAT)
  const bool is_of_flags = other.type.enumeration != 0 &&
                           !build_.query.enumerations[other.type.enumeration - 1U].masks.empty();
  const bool joins_flags = syntax.kind == SyntaxKind::Binary && syntax.binary == BinaryOperator::Or;
  if (is_of_flags && joins_flags) {
    Expression left = CLEW_TRY(operand_beside(syntax.kids[0], other));
    Expression right = CLEW_TRY(operand_beside(syntax.kids[1], other));
    return make_binary(build_.report, BinaryOperator::Or, {std::move(left), std::move(right)},
                       at(syntax.span));
  }
  const bool is_name = syntax.kind == SyntaxKind::Name || syntax.kind == SyntaxKind::String;
  if (!is_name || other.type.enumeration == 0 || find(syntax.text) != nullptr) {
    return number(syntax);
  }
  std::optional<Expression> found = enumerator(syntax.text, other, syntax.span);
  if (found) return *found;
  const Enumeration& enumeration = build_.query.enumerations[other.type.enumeration - 1U];
  std::vector<std::string_view> names;
  names.reserve(enumeration.enumerators.size());
  for (const Enumerator& candidate : enumeration.enumerators) {
    names.push_back(candidate.name);
  }
  return fail(syntax.span, fmt::format("'{}' has no enumerator '{}'{}", enumeration.name,
                                       syntax.text, did_you_mean(syntax.text, names)));
}

Expected<Value> Evaluator::binary(const SyntaxExpression& syntax) {
  const SyntaxExpression& left_syntax = syntax.kids[0];
  const SyntaxExpression& right_syntax = syntax.kids[1];
  if (std::optional<Expression> asked = CLEW_TRY(asks_for_nothing(syntax)))
    return scalar_value(*std::move(asked));
  const bool is_left_name =
      left_syntax.kind == SyntaxKind::Name && find(left_syntax.text) == nullptr;
  if (is_left_name && right_syntax.kind != SyntaxKind::Name) {
    // FLAG == e.args.flag: the side that is no plain name tells the enumeration.
    Value other = CLEW_TRY(evaluate(right_syntax));
    const bool is_enumeration =
        other.kind == Value::Kind::Scalar && other.expression.type.enumeration != 0;
    if (is_enumeration) {
      Expression constant = CLEW_TRY(operand_beside(left_syntax, other.expression));
      Expected<Expression> made = make_binary(
          build_.report, syntax.binary, {std::move(constant), other.expression}, at(syntax.span));
      return scalar_value(CLEW_TRY(std::move(made)));
    }
  }
  Value left = CLEW_TRY(evaluate(left_syntax));
  if (left.kind == Value::Kind::Deadline) return deadline_sum(syntax, left);
  const CTypeInfo left_type = build_.types.describe(left.c_type);
  const bool is_sum =
      syntax.binary == BinaryOperator::Add || syntax.binary == BinaryOperator::Subtract;
  const bool is_pointer =
      !left.adds_bytes && (left.kind == Value::Kind::Place || left_type.kind == CKind::Pointer);
  if (is_sum && is_pointer) {
    Value right_value = CLEW_TRY(evaluate(right_syntax));
    const bool is_difference = build_.types.describe(right_value.c_type).kind == CKind::Pointer;
    Expression amount = CLEW_TRY(to_scalar(std::move(right_value), right_syntax.span));
    if (!is_difference) return pointer_sum(syntax, std::move(left), std::move(amount));
  }
  Expression a = CLEW_TRY(to_scalar(std::move(left), left_syntax.span));
  if (is_histogram(a)) return fail(left_syntax.span, "a histogram is not a number");
  Expression b = CLEW_TRY(operand_beside(right_syntax, a));
  Expected<Expression> made =
      make_binary(build_.report, syntax.binary, {std::move(a), std::move(b)}, at(syntax.span));
  return scalar_value(CLEW_TRY(std::move(made)));
}

// Now + 5m
Expected<Value> Evaluator::deadline_sum(const SyntaxExpression& syntax, const Value& deadline) {
  const bool is_bound = precedence_of(syntax.binary) == Precedence::Comparison;
  if (is_bound || syntax.binary != BinaryOperator::Add) {
    return fail(syntax.kids[0].span,
                "Now can only bound the session: 'e.time < Now.AddMinutes(5)'");
  }
  const Expression amount = CLEW_TRY(scalar(syntax.kids[1]));
  const bool is_duration =
      amount.kind == ExpressionKind::Integer && amount.type.unit == Unit::Nanoseconds;
  if (!is_duration || amount.integer < 0) {
    return fail(syntax.kids[1].span, "expected a duration after 'Now +', such as 5m");
  }
  Value result = deadline;
  result.deadline_ns = folded(BinaryOperator::Add, deadline.deadline_ns, amount.integer, kInt64);
  if (result.deadline_ns < 0) return fail(syntax.span, "this duration is over 292 years");
  return result;
}

Expected<Value> Evaluator::unary(const SyntaxExpression& syntax, UnaryOperator op) {
  Expression operand = CLEW_TRY(number(syntax.kids[0]));
  return scalar_value(CLEW_TRY(make_unary(build_.report, op, std::move(operand), at(syntax.span))));
}

Expected<Value> Evaluator::conditional(const SyntaxExpression& syntax) {
  std::vector<Expression> operands;
  operands.reserve(syntax.kids.size());
  for (const SyntaxExpression& kid : syntax.kids) {
    operands.push_back(CLEW_TRY(number(kid)));
  }
  return scalar_value(
      CLEW_TRY(make_conditional(build_.report, std::move(operands), at(syntax.span))));
}

Expected<Value> Evaluator::membership(const SyntaxExpression& syntax) {
  Expression result;
  result.kind = ExpressionKind::In;
  result.type = kInt32;
  Expression what = CLEW_TRY(number(syntax.kids[0]));
  const Expression unpromoted = what;
  if (is_integer(what)) what = convert(unpromoted, promoted(what.type));
  result.operands.push_back(what);
  for (size_t i = 1; i < syntax.kids.size(); ++i) {
    Expression candidate = CLEW_TRY(operand_beside(syntax.kids[i], unpromoted));
    const bool fits = is_integer(what) ? is_integer(candidate)
                                       : candidate.type.kind == what.type.kind &&
                                             what.type.kind == TypeKind::String;
    if (!is_constant(candidate) || !fits) {
      return fail(syntax.kids[i].span, fmt::format("'in' needs constants of the type of its left "
                                                   "side, {}",
                                                   name_of(what.type)));
    }
    Type type = what.type;
    type.unit = Unit::None;
    if (is_integer(candidate))
      candidate = integer_constant(candidate.integer, type, candidate.span);
    result.operands.push_back(std::move(candidate));
  }
  return scalar_value(std::move(result));
}

Expected<Value> Evaluator::like(const SyntaxExpression& syntax) {
  std::vector<Expression> operands;
  operands.push_back(CLEW_TRY(scalar(syntax.kids[0])));
  operands.push_back(CLEW_TRY(scalar(syntax.kids[1])));
  return scalar_value(CLEW_TRY(text_call(Function::Like, std::move(operands), at(syntax.span))));
}

Expected<Value> Evaluator::record(const SyntaxExpression& syntax) {
  Value result = value_of_kind(Value::Kind::Record);
  for (size_t i = 0; i < syntax.kids.size(); ++i) {
    std::string name = syntax.names[i];
    if (name.empty()) name = derived_name(syntax.kids[i], build_.report.text().text);
    const Value* taken = find_member(result.members, name);
    if (taken != nullptr) {
      return fail(syntax.kids[i].span, fmt::format("two members are named '{}'", name));
    }
    Value value = CLEW_TRY(evaluate(syntax.kids[i]));
    result.members.push_back({.name = std::move(name), .value = std::move(value)});
  }
  return result;
}

// --- names of columns ----------------------------------------------------------------------------

std::string derived_name(const SyntaxExpression& syntax, std::string_view text) {
  if (syntax.kind == SyntaxKind::Name || syntax.kind == SyntaxKind::Member) {
    const bool is_count = same_word(syntax.text, "count");
    const bool is_of_window = syntax.kind == SyntaxKind::Member &&
                              syntax.kids[0].kind == SyntaxKind::Name &&
                              same_word(syntax.kids[0].text, kWindowName);
    if (is_of_window) return fmt::format("{}.{}", kWindowName, syntax.text);
    return is_count ? "count" : syntax.text;
  }
  std::string written;
  for (const char c : text.substr(syntax.span.begin, syntax.span.end - syntax.span.begin)) {
    const bool is_blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!is_blank) {
      written += c;
    } else if (!written.empty() && written.back() != ' ') {
      written += ' ';
    }
  }
  if (syntax.kind != SyntaxKind::Call) return written;
  const SyntaxExpression& callee = syntax.kids[0];
  if (!is_aggregate_name(callee.text)) return written;
  std::string name;
  for (const char c : callee.text) {
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (syntax.kids.size() == 1) return name;
  const SyntaxExpression& first = syntax.kids[1];
  const SyntaxExpression& body = first.kind == SyntaxKind::Lambda ? first.kids[0] : first;
  name += '(';
  name += derived_name(body, text);
  for (size_t i = 2; i < syntax.kids.size(); ++i) {
    name += ", ";
    name += derived_name(syntax.kids[i], text);
  }
  name += ')';
  return name;
}

}  // namespace clew::query
