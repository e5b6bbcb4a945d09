// SPDX-License-Identifier: Apache-2.0
// What events of the kernel export beside the fields that all events have: the arguments of system
// calls, the fields of a tracepoint's record, where a sample was taken. All of it is made of arg0
// and up, so that plans know no further fields.
#include <array>

#include <fmt/format.h>

#include "query/arithmetic.h"
#include "query/evaluator.h"
#include "query/fields.h"
#include "query/print.h"
#include "query/token.h"

namespace clew::query {
namespace {

constexpr uint16_t kSystemCallArguments = 6;
constexpr Type kSymbolType{.kind = TypeKind::Symbol, .is_signed = false};
constexpr Type kWord32{.size_bytes = 4, .is_signed = false};
constexpr int64_t kErrnoMax = 4095;  // The kernel's MAX_ERRNO.

}  // namespace

std::span<const std::string_view> kernel_names(SourceKind kind) {
  static constexpr std::array<std::string_view, 1> kResult = {"errno"};
  static constexpr std::array<std::string_view, 3> kSample = {"pc", "kernel_pc", "user_pc"};
  if (kind == SourceKind::SyscallReturn) return kResult;
  if (kind == SourceKind::Profile) return kSample;
  return {};
}

// Which of arg0 and up there are.
uint16_t kernel_arguments(SourceKind kind) {
  if (kind == SourceKind::Profile) return 2;
  return kind == SourceKind::Tracepoint ? uint16_t{1} : kSystemCallArguments;
}

Expected<Value> Evaluator::kernel_member(const Value& event, std::string_view name, Span span) {
  if (same_word(name, "errno")) return error_number(event, span);
  const Expression kernel_pc = sampled_address(event, 0, span);
  const Expression user_pc = sampled_address(event, 1, span);
  if (same_word(name, "kernel_pc")) return scalar_value(kernel_pc);
  if (same_word(name, "user_pc")) return scalar_value(user_pc);
  // A sample is in the kernel or in a program: the other one is 0.
  Expression either;
  either.kind = ExpressionKind::Conditional;
  either.type = kSymbolType;
  either.span = at(span);
  Expression address;
  address.kind = ExpressionKind::Convert;
  address.type = kUint64;
  address.span = at(span);
  address.operands.push_back(kernel_pc);
  either.operands.push_back(
      CLEW_TRY(make_binary(build_.report, BinaryOperator::NotEqual,
                           {std::move(address), integer_constant(0, kUint64, span)}, at(span))));
  either.operands.push_back(kernel_pc);
  either.operands.push_back(user_pc);
  return scalar_value(std::move(either));
}

Expression Evaluator::sampled_address(const Value& event, uint16_t index, Span span) const {
  Expression address = field_expression(Field::Argument, index, event.stream, at(span));
  address.type = kSymbolType;
  return address;
}

// 0 when the call did not fail.
Expected<Value> Evaluator::error_number(const Value& event, Span span) {
  const Expression result = field_expression(Field::ReturnValue, 0, event.stream, at(span));
  const auto compare = [&](BinaryOperator op, int64_t bound) {
    return make_binary(build_.report, op, {result, integer_constant(bound, result.type, at(span))},
                       at(span));
  };
  Expression below = CLEW_TRY(compare(BinaryOperator::Less, 0));
  Expression above = CLEW_TRY(compare(BinaryOperator::GreaterEqual, -kErrnoMax));
  Expression failed = CLEW_TRY(make_binary(build_.report, BinaryOperator::LogicalAnd,
                                           {std::move(below), std::move(above)}, at(span)));
  Expression negated = CLEW_TRY(make_unary(build_.report, UnaryOperator::Negate, result, at(span)));
  Expression none = integer_constant(0, result.type, at(span));
  Expression number = CLEW_TRY(make_conditional(
      build_.report, {std::move(failed), std::move(negated), std::move(none)}, at(span)));
  return scalar_value(convert(std::move(number), build_.types.error_number()));
}

tl::unexpected<Error> Evaluator::fail_argument_count(const Value& event, Span span) {
  const ResolvedSource& source = source_of(event);
  if (source.source.is_raw() || source.source.moves_bytes()) {
    return fail(span,
                fmt::format("{} has arguments by their names, and arg0", shown_source(source)));
  }
  if (source.source.kind == SourceKind::Tracepoint) {
    return fail(span, fmt::format("{} has fields, and no arguments by number; arg0 is the address "
                                  "of its record",
                                  shown_source(source)));
  }
  return fail(span, fmt::format("the arguments of {} go from arg0 to arg{}", shown_source(source),
                                kernel_arguments(source.source.kind) - 1));
}

// A field of a tracepoint's record.
Expected<Value> Evaluator::recorded(const Value& event, const Parameter& field, Span span) {
  const Expression record =
      convert(field_expression(Field::Argument, 0, event.stream, at(span)), kAddress);
  const auto behind = [&](uint64_t offset_bytes) {
    return offset_address(
        record, integer_constant(static_cast<int64_t>(offset_bytes), kUint64, at(span)), 1, span);
  };
  Expression place = CLEW_TRY(behind(field.offset_bytes));
  if (field.place == ParameterPlace::Record) {
    return read_place(std::move(place), foreign(field.type), span);
  }
  // A word says where it is: its offset in the low half.
  constexpr int64_t kOffsetMask = 0xFFFF;
  Expression word;
  word.kind = ExpressionKind::Load;
  word.type = kWord32;
  word.span = at(span);
  word.operands.push_back(std::move(place));
  Expression offset = CLEW_TRY(
      make_binary(build_.report, BinaryOperator::And,
                  {std::move(word), integer_constant(kOffsetMask, kWord32, at(span))}, at(span)));
  Expression begin = record;
  if (field.place == ParameterPlace::Relative) {
    begin = CLEW_TRY(behind(field.offset_bytes + kWord32.size_bytes));
  }
  Expression address = CLEW_TRY(offset_address(std::move(begin), std::move(offset), 1, span));
  return read_place(std::move(address), foreign(field.type), span);
}

}  // namespace clew::query
