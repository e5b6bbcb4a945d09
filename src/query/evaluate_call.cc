// SPDX-License-Identifier: Apache-2.0
// Functions, and the methods that Fay's queries call on events, strings and Now.
#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "query/arithmetic.h"
#include "query/evaluator.h"
#include "query/extension_source.h"
#include "query/fields.h"
#include "query/print.h"
#include "query/token.h"
#include "query/vocabulary.h"

namespace clew::query {
namespace {

struct FunctionInfo {
  std::string_view name;
  Function function;
};
constexpr std::array<FunctionInfo, 11> kFunctions = {{{"log2", Function::Log2},
                                                      {"min", Function::Min},
                                                      {"max", Function::Max},
                                                      {"abs", Function::Abs},
                                                      {"hash", Function::Hash},
                                                      {"len", Function::Len},
                                                      {"substr", Function::Substr},
                                                      {"before", Function::Before},
                                                      {"contains", Function::Contains},
                                                      {"startswith", Function::StartsWith},
                                                      {"hex", Function::Hex}}};

struct ReadInfo {
  std::string_view name;
  Type type;
};
constexpr std::array<ReadInfo, 10> kReads = {
    {{"u8", {.size_bytes = 1, .is_signed = false}},
     {"u16", {.size_bytes = 2, .is_signed = false}},
     {"u32", {.size_bytes = 4, .is_signed = false}},
     {"u64", {.size_bytes = 8, .is_signed = false}},
     {"s8", {.size_bytes = 1}},
     {"s16", {.size_bytes = 2}},
     {"s32", {.size_bytes = 4}},
     {"s64", {.size_bytes = 8}},
     {"f32", {.kind = TypeKind::Float, .size_bytes = 4, .is_signed = false}},
     {"f64", {.kind = TypeKind::Float, .size_bytes = 8, .is_signed = false}}}};

struct DeadlineUnit {
  std::string_view name;
  uint64_t ns;
};
constexpr std::array<DeadlineUnit, 5> kDeadlineUnits = {{{"AddMilliseconds", 1'000'000},
                                                         {"AddSeconds", 1'000'000'000},
                                                         {"AddMinutes", 60'000'000'000},
                                                         {"AddHours", 3'600'000'000'000},
                                                         {"AddDays", 86'400'000'000'000}}};

// Fay's accessor functions (4.3) and what they are here.
struct FayAccessor {
  std::string_view name;
  Field field;
};
constexpr std::array<FayAccessor, 5> kFayAccessors = {{{"GetMachineID", Field::Host},
                                                       {"GetCurrentProcessID", Field::Pid},
                                                       {"GetCurrentThreadID", Field::Tid},
                                                       {"GetCurrentCPU", Field::Cpu},
                                                       {"GetTime", Field::Time}}};

// Fields that can be called with a number of frames.
std::optional<Field> stack_field(std::string_view name) {
  const FieldInfo* const found = find_field(name);
  if (found == nullptr || found->type.kind != TypeKind::Stack) return std::nullopt;
  return found->field;
}

constexpr std::array<std::string_view, 4> kOtherFunctions = {"sample", "MovingAverage", "arg",
                                                             "GetArg"};

std::string function_hint(std::string_view name, const Environment& environment) {
  ExtensionSource* const extensions = environment.extensions;
  std::vector<std::string_view> names = {
      "sample",    "arg",  "count",    "sum",     "avg",        "stddev",   "quantize",
      "lquantize", "topk", "distinct", "average", "llquantize", "quantile", "variance"};
  for (const std::string_view text : text_functions())
    names.push_back(text);
  if (environment.vocabulary != nullptr) {
    for (const ValueDefinition& value : environment.vocabulary->values())
      names.push_back(value.name);
  }
  for (const FunctionInfo& candidate : kFunctions) {
    names.push_back(candidate.name);
  }
  const std::vector<std::string> others =
      extensions == nullptr ? std::vector<std::string>{} : extensions->names();
  names.insert(names.end(), others.begin(), others.end());
  return did_you_mean(name, names);
}

}  // namespace

bool is_language_function(std::string_view name) {
  const auto is_it = [name](const auto& one) { return same_word(one.name, name); };
  const auto is_word = [name](std::string_view one) { return same_word(one, name); };
  return is_aggregate_name(name) || std::any_of(kFunctions.begin(), kFunctions.end(), is_it) ||
         std::any_of(kReads.begin(), kReads.end(), is_it) ||
         std::any_of(text_functions().begin(), text_functions().end(), is_word) ||
         std::any_of(kOtherFunctions.begin(), kOtherFunctions.end(), is_word);
}

Expected<void> Evaluator::check_count(const SyntaxExpression& syntax, size_t least, size_t most) {
  const size_t count = syntax.kids.size() - 1;
  if (count >= least && count <= most) return {};
  const std::string wanted =
      least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
  if (most == 0) {
    return fail(syntax.span, fmt::format("'{}' takes no argument", syntax.kids[0].text));
  }
  return fail(syntax.span, fmt::format("'{}' takes {} argument{}, not {}", syntax.kids[0].text,
                                       wanted, wanted == "1" ? "" : "s", count));
}

Expected<std::vector<Expression>> Evaluator::operands_of(const SyntaxExpression& syntax) {
  std::vector<Expression> operands;
  for (size_t i = 1; i < syntax.kids.size(); ++i) {
    operands.push_back(CLEW_TRY(number(syntax.kids[i])));
  }
  return operands;
}

Expected<int64_t> Evaluator::constant_of(const SyntaxExpression& syntax, std::string_view what) {
  const Expression value = CLEW_TRY(scalar(syntax));
  if (value.kind == ExpressionKind::Integer) return value.integer;
  return fail(syntax.span, fmt::format("{} is a constant integer", what));
}

// --- calls ---------------------------------------------------------------------------------------

Expected<Value> Evaluator::function_call(const SyntaxExpression& syntax) {
  const SyntaxExpression& callee = syntax.kids[0];
  if (callee.kind == SyntaxKind::Member) return method_call(syntax);
  if (callee.kind == SyntaxKind::Name) return named_call(syntax, callee.text);
  return fail(syntax.span, "only functions and methods can be called");
}

Expected<Value> Evaluator::named_call(const SyntaxExpression& syntax, std::string_view name) {
  const bool is_extreme = same_word(name, "min") || same_word(name, "max");
  if (is_aggregate_name(name) && !(is_extreme && syntax.kids.size() > 2)) {
    return aggregate_call(syntax, name);
  }
  for (const FunctionInfo& candidate : kFunctions) {
    if (same_word(candidate.name, name)) return scalar_call(syntax, candidate.function);
  }
  for (const ReadInfo& candidate : kReads) {
    if (same_word(candidate.name, name)) return read_number(syntax, candidate.type);
  }
  if (std::optional<Value> text = CLEW_TRY(text_function(syntax, name))) return *std::move(text);
  if (same_word(name, "sample")) return sample_call(syntax);
  if (same_word(name, "MovingAverage")) return fay_extension(syntax, kAverageFunction);
  const bool is_argument = same_word(name, "GetArg") || same_word(name, "arg");
  if (implicit_event_ && (is_argument || stack_field(name))) {
    return event_method(Value(*implicit_event_), syntax);
  }
  if (const ExtensionFunction* function = find_extension(name))
    return extension_call(syntax, *function);
  return fail(syntax.kids[0].span,
              fmt::format("no function '{}'{}", name, function_hint(name, build_.environment)));
}

Expected<Value> Evaluator::scalar_call(const SyntaxExpression& syntax, Function function) {
  std::vector<Expression> operands = CLEW_TRY(operands_of(syntax));
  const bool is_variadic = function == Function::Min || function == Function::Max;
  size_t wanted = 1;
  const bool has_pattern = function == Function::Contains || function == Function::StartsWith ||
                           function == Function::Before;
  if (has_pattern) wanted = 2;
  if (function == Function::Substr) wanted = 3;
  if (!is_variadic) CLEW_TRY(check_count(syntax, wanted, wanted));
  return scalar_value(CLEW_TRY(call_of(function, std::move(operands), at(syntax.span))));
}

Expected<Expression> Evaluator::call_of(Function function, std::vector<Expression> operands,
                                        Span span) {
  const Expression& first = operands[0];
  switch (function) {
    case Function::Hex:
      if (first.type.kind == TypeKind::Bytes) {
        const Type digits = string_type(2 * size_t{first.type.capacity_bytes} + 1);
        return call(function, digits, std::move(operands), span);
      }
      [[fallthrough]];
    case Function::Log2:
      if (!is_integer(first)) {
        return fail(first.span, fmt::format("'{}' needs an integer, not {}", name_of(function),
                                            name_of(first.type)));
      }
      if (function == Function::Log2) return call(function, kInt32, std::move(operands), span);
      return call(function, string_type(19), std::move(operands), span);  // 0x, 16 digits, NUL.
    case Function::Abs: {
      if (!is_number(first)) {
        return fail(first.span, fmt::format("'abs' needs a number, not {}", name_of(first.type)));
      }
      operands[0] = convert(std::move(operands[0]), promoted(operands[0].type));
      const Type type = operands[0].type;
      return call(function, type, std::move(operands), span);
    }
    case Function::Hash:
      if (!is_integer(first) && first.type.kind != TypeKind::String) {
        return fail(first.span, fmt::format("'hash' needs an integer or a string, not {}",
                                            name_of(first.type)));
      }
      return call(function, kUint64, std::move(operands), span);
    case Function::Min:
    case Function::Max:
      return extreme_call(function, std::move(operands), span);
    case Function::Len:
    case Function::Before:
    case Function::Contains:
    case Function::StartsWith:
    case Function::Like:
      return text_call(function, std::move(operands), span);
    case Function::Substr:
      return substring_call(std::move(operands), span);
    case Function::Sample:
    case Function::Cut:
    case Function::WideText:
    case Function::Address:
    case Function::SocketAddress:
    case Function::Print:
    case Function::IsNothing:
    case Function::Extension:
      break;
  }
  return fail(span, "this function cannot be called here");
}

// min(a, b, c) is min(min(a, b), c).
Expected<Expression> Evaluator::extreme_call(Function function, std::vector<Expression> operands,
                                             Span span) {
  constexpr size_t kOperandsMax = 16;
  if (operands.size() > kOperandsMax) {
    return fail(span,
                fmt::format("'{}' takes at most {} arguments", name_of(function), kOperandsMax));
  }
  Expression result = std::move(operands[0]);
  for (size_t i = 1; i < operands.size(); ++i) {
    if (!is_number(result) || !is_number(operands[i])) {
      return fail(span, fmt::format("'{}' needs numbers, not {} and {}", name_of(function),
                                    name_of(result.type), name_of(operands[i].type)));
    }
    Type type = common_type(result.type, operands[i].type);
    Expression a = convert(std::move(result), type);
    Expression b = convert(std::move(operands[i]), type);
    if (a.type.unit == b.type.unit) type.unit = a.type.unit;
    result = call(function, type, {std::move(a), std::move(b)}, span);
  }
  return result;
}

Expected<Expression> Evaluator::text_call(Function function, std::vector<Expression> operands,
                                          Span span) {
  if (operands[0].type.kind != TypeKind::String) {
    const bool is_pointer = operands[0].type.unit == Unit::Address;
    return fail(operands[0].span,
                fmt::format("'{}' needs a string, not {}{}", name_of(function),
                            name_of(operands[0].type), is_pointer ? "; read it with str(…)" : ""));
  }
  const bool needs_pattern = operands.size() > 1;
  if (needs_pattern && operands[1].kind != ExpressionKind::String) {
    return fail(operands[1].span,
                fmt::format("'{}' needs a constant string on its right", name_of(function)));
  }
  if (function == Function::Before) {
    if (operands[1].text.empty())
      return fail(operands[1].span, "'before' needs a mark of at least one byte");
    const Type type = operands[0].type;
    return call(function, type, std::move(operands), span);
  }
  return call(function, function == Function::Len ? kUint32 : kInt32, std::move(operands), span);
}

Expected<Expression> Evaluator::substring_call(std::vector<Expression> operands, Span span) {
  if (operands[0].type.kind != TypeKind::String) {
    return fail(operands[0].span,
                fmt::format("'substr' needs a string, not {}", name_of(operands[0].type)));
  }
  for (size_t i = 1; i < 3; ++i) {
    const Expression& limit = operands[i];
    const bool fits = limit.kind == ExpressionKind::Integer && limit.integer >= 0 &&
                      limit.integer < kStringMaxBytes;
    if (!fits) {
      return fail(limit.span, fmt::format("'substr' takes a string and two constants, the first "
                                          "byte and the count, from 0 to {}",
                                          kStringMaxBytes - 1));
    }
    operands[i] = integer_constant(limit.integer, kUint32, limit.span);
  }
  const auto count = static_cast<size_t>(operands[2].integer) + 1;
  const Type type = string_type(std::min<size_t>(count, operands[0].type.capacity_bytes));
  return call(Function::Substr, type, std::move(operands), span);
}

// sample(n): one in n. sample(event, State): Fay's sketches, an extension; events are told apart by
// where they come from.
Expected<Value> Evaluator::sample_call(const SyntaxExpression& syntax) {
  CLEW_TRY(check_count(syntax, 1, 2));
  if (syntax.kids.size() == 3) return sketch_call(syntax);
  const int64_t one_in = CLEW_TRY(constant_of(syntax.kids[1], "n of sample(n)"));
  if (one_in < 1 || one_in > std::numeric_limits<uint32_t>::max()) {
    return fail(syntax.kids[1].span, "sample(n) passes one event in n; n is from 1 to 4294967295");
  }
  Expression rate = integer_constant(one_in, kUint32, at(syntax.kids[1].span));
  return scalar_value(call(Function::Sample, kInt32, {std::move(rate)}, at(syntax.span)));
}

Expected<Value> Evaluator::sketch_call(const SyntaxExpression& syntax) {
  const Value event = CLEW_TRY(evaluate(syntax.kids[1]));
  const Value state = CLEW_TRY(evaluate(syntax.kids[2]));
  if (state.kind != Value::Kind::State) {
    return fail(syntax.kids[2].span, "expected State: sample(event, State), or sample(100)");
  }
  const ExtensionFunction* function = find_extension(kSketchFunction);
  if (event.kind != Value::Kind::Event || function == nullptr || function->parameters.size() != 1) {
    return fay_extension(syntax, kSketchFunction);
  }
  const std::vector<ResolvedSource>& sources = build_.streams[event.stream].sources;
  const bool has_caller = std::all_of(sources.begin(), sources.end(), [](const auto& one) {
    return has_field(one.source.kind, Field::Caller);
  });
  const Field what = has_caller ? Field::Caller : Field::Tid;
  Value place = CLEW_TRY(field_of(event, what, 0, syntax.span));
  Expression key = CLEW_TRY(to_scalar(std::move(place), syntax.span));
  key.type = kUint64;
  key = convert(std::move(key), function->parameters[0]);
  Expression sample =
      call(Function::Extension, function->result, {std::move(key)}, at(syntax.span));
  sample.text = function->name;
  return scalar_value(std::move(sample));
}

// f(a, b), or as Fay writes it, f(a, b, State): the state is the extension's own.
Expected<Value> Evaluator::extension_call(const SyntaxExpression& syntax,
                                          const ExtensionFunction& function) {
  if (!function.refusal.empty()) {
    return fail(syntax.kids[0].span,
                fmt::format("'{}' cannot be called: {}", function.name, function.refusal));
  }
  size_t count = syntax.kids.size() - 1;
  if (count > function.parameters.size()) {
    const Value last = CLEW_TRY(evaluate(syntax.kids.back()));
    if (last.kind == Value::Kind::State) --count;
  }
  if (count != function.parameters.size())
    CLEW_TRY(check_count(syntax, function.parameters.size(), function.parameters.size()));
  std::vector<Expression> arguments;
  for (size_t i = 0; i < count; ++i) {
    arguments.push_back(CLEW_TRY(extension_argument(syntax.kids[i + 1], function, i)));
  }
  Expression expression =
      call(Function::Extension, function.result, std::move(arguments), at(syntax.span));
  expression.text = function.name;
  return scalar_value(std::move(expression));
}

Expected<Expression> Evaluator::extension_argument(const SyntaxExpression& syntax,
                                                   const ExtensionFunction& function,
                                                   size_t index) {
  const Type& wanted = function.parameters[index];
  Value value = CLEW_TRY(evaluate(syntax));
  const bool wants_address = wanted.unit == Unit::Address;
  Expression argument = wants_address ? CLEW_TRY(address_of_value(std::move(value), syntax.span))
                                      : CLEW_TRY(to_scalar(std::move(value), syntax.span));
  if (argument.type.kind == TypeKind::Symbol) argument.type = kUint64;  // The address itself.
  if (is_integer(argument)) return convert(std::move(argument), wanted);
  return fail(syntax.span,
              fmt::format("argument {} of '{}' is an {}, not {}", index + 1, function.name,
                          wants_address ? "address" : "integer", name_of(argument.type)));
}

const ExtensionFunction* Evaluator::find_extension(std::string_view name) {
  ExtensionSource* extensions = build_.environment.extensions;
  return extensions == nullptr ? nullptr : extensions->find(name);
}

Expected<Value> Evaluator::fay_extension(const SyntaxExpression& syntax, std::string_view name) {
  const ExtensionFunction* function = find_extension(name);
  if (function != nullptr) return extension_call(syntax, *function);
  return fail(syntax.kids[0].span, fmt::format("'{}' is the function {} of an extension, which is "
                                               "not here; give it with --ext",
                                               syntax.kids[0].text, name));
}

// --- reads ---------------------------------------------------------------------------------------

Expected<Value> Evaluator::read_number(const SyntaxExpression& syntax, Type type) {
  CLEW_TRY(check_count(syntax, 1, 1));
  Value pointer = CLEW_TRY(evaluate(syntax.kids[1]));
  Expression load;
  load.kind = ExpressionKind::Load;
  load.type = type;
  load.operands.push_back(CLEW_TRY(address_of_value(std::move(pointer), syntax.kids[1].span)));
  return scalar_value(std::move(load));
}

// --- methods -------------------------------------------------------------------------------------

Expected<Value> Evaluator::method_call(const SyntaxExpression& syntax) {
  const SyntaxExpression& callee = syntax.kids[0];
  const SyntaxExpression& object = callee.kids[0];
  const bool is_fay =
      object.kind == SyntaxKind::Name && object.text == "Fay" && find("Fay") == nullptr;
  if (is_fay) return fay_call(syntax);
  Value value = CLEW_TRY(evaluate(object));
  if (same_word(callee.text, "ToString")) {
    CLEW_TRY(check_count(syntax, 0, 0));
    return value;  // Every answer is printed as text anyway.
  }
  switch (value.kind) {
    case Value::Kind::Event:
    case Value::Kind::Entry:
      return event_method(value, syntax);
    case Value::Kind::Group:
      return group_method(value, syntax);
    case Value::Kind::Deadline:
      return deadline_method(value, syntax);
    case Value::Kind::Scalar:
    case Value::Kind::Place:
    case Value::Kind::Registers:
    case Value::Kind::Record:
      return text_method(syntax);
    case Value::Kind::Arguments:
    case Value::Kind::EntryArguments:
    case Value::Kind::State:
      break;
  }
  return fail(callee.name_span, fmt::format("no method '{}' here", callee.text));
}

// e.ustack(5): at most so many frames.
Expected<Value> Evaluator::stack_call(const Value& event, Field field,
                                      const SyntaxExpression& syntax) {
  CLEW_TRY(check_count(syntax, 1, 1));
  const int64_t frames = CLEW_TRY(constant_of(syntax.kids[1], "the number of frames"));
  if (frames < 1 || frames > kStackFramesMax) {
    return fail(syntax.kids[1].span,
                fmt::format("the number of frames is from 1 to {}", kStackFramesMax));
  }
  Value stack = CLEW_TRY(field_of(event, field, 0, syntax.span));
  stack.expression.type.capacity_bytes = static_cast<uint16_t>(8 * frames);
  return stack;
}

// GetArg counts from 1, as Fay does; arg from 0, as the fields arg0, arg1, … do.
Expected<Value> Evaluator::event_method(const Value& event, const SyntaxExpression& syntax) {
  const SyntaxExpression& callee = syntax.kids[0];
  if (const auto stack = stack_field(callee.text)) return stack_call(event, *stack, syntax);
  const bool is_fay_style = same_word(callee.text, "GetArg");
  if (!is_fay_style && !same_word(callee.text, "arg")) {
    constexpr std::array<std::string_view, 6> kMethods = {"GetArg", "arg",    "ToString",
                                                          "stack",  "ustack", "kstack"};
    return fail(callee.name_span, fmt::format("an event has no method '{}'{}", callee.text,
                                              did_you_mean(callee.text, kMethods)));
  }
  CLEW_TRY(check_count(syntax, 1, 1));
  const int64_t number = CLEW_TRY(constant_of(syntax.kids[1], "the number of an argument"));
  const int64_t first = is_fay_style ? 1 : 0;
  if (number < first || number - first >= kArgumentsMax) {
    return fail(syntax.kids[1].span, fmt::format("'{}' counts arguments from {} to {}", callee.text,
                                                 first, kArgumentsMax - 1 + first));
  }
  return argument(event, static_cast<uint64_t>(number - first), syntax.span);
}

// name.Contains("x"), name.StartsWith("x"), name.Substring(0, 4)
Expected<Value> Evaluator::text_method(const SyntaxExpression& syntax) {
  const SyntaxExpression& callee = syntax.kids[0];
  std::vector<Expression> operands;
  operands.push_back(CLEW_TRY(scalar(callee.kids[0])));
  for (Expression& operand : CLEW_TRY(operands_of(syntax))) {
    operands.push_back(std::move(operand));
  }
  std::optional<Function> function;
  if (same_word(callee.text, "Contains")) function = Function::Contains;
  if (same_word(callee.text, "StartsWith")) function = Function::StartsWith;
  if (same_word(callee.text, "Substring")) function = Function::Substr;
  if (!function) return fail(callee.name_span, fmt::format("no method '{}' here", callee.text));
  const size_t wanted = *function == Function::Substr ? 2 : 1;
  CLEW_TRY(check_count(syntax, wanted, wanted));
  return scalar_value(CLEW_TRY(call_of(*function, std::move(operands), at(syntax.span))));
}

Expected<Value> Evaluator::deadline_method(const Value& deadline, const SyntaxExpression& syntax) {
  const SyntaxExpression& callee = syntax.kids[0];
  std::vector<std::string_view> names;
  for (const DeadlineUnit& unit : kDeadlineUnits) {
    names.push_back(unit.name);
    if (!same_word(unit.name, callee.text)) continue;
    CLEW_TRY(check_count(syntax, 1, 1));
    const int64_t amount = CLEW_TRY(constant_of(syntax.kids[1], "the time to add"));
    const auto amount_max = static_cast<int64_t>(INT64_MAX / unit.ns);
    if (amount < 0 || amount > amount_max) {
      return fail(syntax.kids[1].span, fmt::format("the time to add is from 0 to {}", amount_max));
    }
    Value result = deadline;
    const auto sum_ns =
        static_cast<uint64_t>(deadline.deadline_ns) + static_cast<uint64_t>(amount) * unit.ns;
    if (sum_ns > INT64_MAX) return fail(syntax.span, "this duration is over 292 years");
    result.deadline_ns = static_cast<int64_t>(sum_ns);
    return result;
  }
  return fail(callee.name_span, fmt::format("Now has no method '{}'{}", callee.text,
                                            did_you_mean(callee.text, names)));
}

Expected<Value> Evaluator::fay_call(const SyntaxExpression& syntax) {
  const SyntaxExpression& callee = syntax.kids[0];
  std::vector<std::string_view> names;
  for (const FayAccessor& accessor : kFayAccessors) {
    names.push_back(accessor.name);
    if (!same_word(accessor.name, callee.text)) continue;
    CLEW_TRY(check_count(syntax, 0, 0));
    Value event = value_of_kind(Value::Kind::Event);
    return field_of(event, accessor.field, 0, syntax.span);
  }
  return fail(callee.name_span, fmt::format("Fay has no accessor '{}'{}", callee.text,
                                            did_you_mean(callee.text, names)));
}

}  // namespace clew::query
