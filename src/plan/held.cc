// SPDX-License-Identifier: Apache-2.0
#include "plan/held.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "query/arithmetic.h"
#include "query/print.h"
#include "query/walk.h"

namespace clew::plan {

using query::Expression;
using query::ExpressionKind;

namespace {

// Lets written out, and the exports of a single source.
Expression written_out(const Expression& expression, const query::Query& query) {
  Expression result = expression;
  query::transform(result, [&](Expression& node) {
    const bool is_input = node.kind == ExpressionKind::Input && query.sources.size() == 1;
    if (node.kind != ExpressionKind::Let && !is_input) return false;
    node = written_out(
        is_input ? query.sources[0].inputs[node.index] : query.lets[node.index].expression, query);
    return true;
  });
  return result;
}

// The name that a capture has in another query, where debug information does not give it a type:
// that of a field, however it was converted.
const Expression& without_conversions(const Expression& expression) {
  const Expression* inner = &expression;
  while (inner->kind == ExpressionKind::Convert) {
    inner = &inner->operands[0];
  }
  return inner->kind == ExpressionKind::Field ? *inner : expression;
}

// "arg0" of "e.arg0".
std::string_view without_event(std::string_view text) {
  constexpr std::string_view kEvent = "e.";
  return text.starts_with(kEvent) ? text.substr(kEvent.size()) : text;
}

// Text without a size is longer in single events than it is in groups. An expression with the one
// in place of the other; none where that has no such text, or might have another value.
class Lengthened {
 public:
  static std::optional<Expression> of(const Expression& expression) {
    Lengthened made;
    Expression result = expression;
    const bool has_changed = made.lengthen(result);
    return has_changed && made.is_same_ ? std::optional(std::move(result)) : std::nullopt;
  }

 private:
  bool lengthen(Expression& expression) {
    if (expression.kind == ExpressionKind::String &&
        expression.text.size() + 1 >= query::kStringDefaultBytes) {
      is_same_ = false;
    }
    if (expression.kind == ExpressionKind::ReadString) {
      const bool is_usual = expression.type.capacity_bytes == query::kStringDefaultBytes;
      if (is_usual) expression.type.capacity_bytes = query::kEventStringDefaultBytes;
      return is_usual;
    }
    bool has_changed = false;
    for (Expression& operand : expression.operands)
      has_changed |= lengthen(operand);
    const bool looks_at_all = expression.kind == ExpressionKind::Call &&
                              expression.function != query::Function::StartsWith;
    if (has_changed && looks_at_all) is_same_ = false;
    return has_changed;
  }

  bool is_same_ = true;
};

class HeldCapturer {
 public:
  HeldCapturer(const query::Query& query, const std::vector<HeldCapture>& held,
               const query::Reporter& report)
      : query_(query), report_(report) {
    for (const HeldCapture& capture : held) {
      captures.push_back(capture.meaning);
      names_.emplace_back(capture.text);
    }
    Expression time;
    time.kind = ExpressionKind::Field;
    time.field = query::Field::Time;
    time.type.unit = query::Unit::Timestamp;
    std::string name = query::print(time, query);
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) return;
    captures.push_back(std::move(time));
    names_.push_back(std::move(name));
  }

  Expected<Expression> rewrite(const Expression& expression) {
    if (query::is_constant(expression)) return expression;
    const Expression plain = written_out(expression, query_);
    const std::string text = query::print(plain, query_);
    const auto found = std::find(names_.begin(), names_.end(), text);
    if (found != names_.end()) {
      return reference(expression, static_cast<size_t>(found - names_.begin()));
    }
    if (const std::optional<Expression> longer = from_longer_text(plain)) return *longer;
    if (const std::optional<Expression> longer = from_lengthened(plain)) return *longer;
    // Memory of the traced process is not there any more.
    if (plain.operands.empty() || query::reads_memory(plain)) return not_held(expression, text);
    Expression result = plain;
    for (Expression& operand : result.operands) {
      operand = CLEW_TRY(rewrite(operand));
    }
    return result;
  }

  std::vector<Expression> captures;

 private:
  // The beginning of text that is held longer than it is asked for.
  [[nodiscard]] std::optional<Expression> from_longer_text(const Expression& plain) const {
    if (plain.kind != ExpressionKind::ReadString) return std::nullopt;
    for (size_t i = 0; i < captures.size(); ++i) {
      const uint16_t held_bytes = captures[i].type.capacity_bytes;
      if (held_bytes <= plain.type.capacity_bytes) continue;
      Expression whole = plain;
      whole.type.capacity_bytes = held_bytes;
      if (query::print(whole, query_) != names_[i]) continue;
      return beginning(reference(whole, i), plain);
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Expression> from_lengthened(const Expression& plain) const {
    const std::optional<Expression> longer = Lengthened::of(plain);
    if (!longer) return std::nullopt;
    const auto found = std::find(names_.begin(), names_.end(), query::print(*longer, query_));
    if (found == names_.end()) return std::nullopt;
    Expression whole = reference(*longer, static_cast<size_t>(found - names_.begin()));
    const bool is_text = plain.type.kind == query::TypeKind::String;
    return is_text ? beginning(std::move(whole), plain) : whole;
  }

  static Expression beginning(Expression whole, const Expression& plain) {
    Expression cut;
    cut.kind = ExpressionKind::Call;
    cut.function = query::Function::Substr;
    cut.type = plain.type;
    cut.span = plain.span;
    cut.operands = {std::move(whole), number(0), number(plain.type.capacity_bytes - 1)};
    return cut;
  }

  static Expression number(int64_t value) {
    Expression constant;
    constant.kind = ExpressionKind::Integer;
    constant.integer = value;
    return constant;
  }

  // Debug information may have given the recorded query another type for the same name.
  [[nodiscard]] Expression reference(const Expression& expression, size_t index) const {
    Expression input;
    input.kind = ExpressionKind::Input;
    input.type = captures[index].type;
    input.span = expression.span;
    input.index = static_cast<uint16_t>(index);
    const bool same = input.type == expression.type ||
                      input.type.kind != query::TypeKind::Integer ||
                      expression.type.kind != query::TypeKind::Integer;
    if (same) {
      input.type = expression.type;
      return input;
    }
    Expression converted;
    converted.kind = ExpressionKind::Convert;
    converted.type = expression.type;
    converted.span = expression.span;
    converted.operands.push_back(std::move(input));
    return converted;
  }

  [[nodiscard]] tl::unexpected<Error> not_held(const Expression& expression,
                                               const std::string& text) const {
    std::vector<std::string_view> shown;
    shown.reserve(names_.size());
    for (const std::string& name : names_)
      shown.push_back(without_event(name));
    const std::string_view wanted = without_event(text);
    return report_.fail(expression.span,
                        fmt::format("the file does not hold '{}', only {}{}", wanted,
                                    fmt::join(shown, ", "), query::did_you_mean(wanted, shown)));
  }

  const query::Query& query_;
  const query::Reporter& report_;
  std::vector<std::string> names_;
};

}  // namespace

Expected<std::vector<HeldCapture>> held_by(const Plan& plan) {
  std::vector<HeldCapture> held;
  std::set<std::string> taken;
  for (const Expression& capture : CLEW_TRY(plan::capture(plan)).captures) {
    Expression plain = written_out(capture, plan.query);
    taken.insert(query::print(plain, plan.query));
    held.push_back({.text = "", .meaning = std::move(plain)});
  }
  for (HeldCapture& capture : held) {
    capture.text = query::print(without_conversions(capture.meaning), plan.query);
    const std::string whole = query::print(capture.meaning, plan.query);
    // The field itself is held, too: then it has the name.
    if (capture.text != whole && taken.contains(capture.text)) capture.text = whole;
  }
  return held;
}

Expected<Captured> capture_held(const Plan& plan, const std::vector<HeldCapture>& held,
                                const query::Reporter& report) {
  Captured result;
  HeldCapturer capturer(plan.query, held, report);
  for (const Expression& filter : plan.query.where) {
    result.filters.push_back(CLEW_TRY(capturer.rewrite(filter)));
  }
  for (const query::NamedExpression& value : plan.query.values) {
    result.values.push_back(CLEW_TRY(capturer.rewrite(value.expression)));
  }
  for (const query::Aggregate& aggregate : plan.query.aggregates) {
    for (const Expression& argument : aggregate.arguments) {
      result.arguments.push_back(CLEW_TRY(capturer.rewrite(argument)));
    }
  }
  result.captures = std::move(capturer.captures);
  return result;
}

}  // namespace clew::plan
