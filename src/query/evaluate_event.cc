// SPDX-License-Identifier: Apache-2.0
// What events export: fields, arguments, and the names of tracepoints. In a union each source may
// compute a name differently; then the name becomes an Input.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/assert.h"
#include "query/arithmetic.h"
#include "query/evaluator.h"
#include "query/fields.h"
#include "query/print.h"
#include "query/recording_fields.h"
#include "query/token.h"
#include "query/unsupported.h"

namespace clew::query {
namespace {

// The number n of a name such as arg12, when it is one.
// The number of arg0 and up.
std::optional<uint64_t> argument_number(std::string_view name) {
  if (name.size() < 4 || !same_word(name.substr(0, 3), "arg")) return std::nullopt;
  const std::string_view digits = name.substr(3);
  uint64_t number = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (end != digits.data() + digits.size()) return std::nullopt;
  return code == std::errc() ? number : UINT64_MAX;
}

struct VectorName {
  uint16_t number = 0;
  Type type = kFloat64;
};

// xmm0 to xmm7, and as float: xmm0f to xmm7f.
std::optional<VectorName> vector_name(std::string_view name) {
  if (name.size() < 4 || name.size() > 5 || !same_word(name.substr(0, 3), "xmm")) return {};
  const bool is_number = name[3] >= '0' && name[3] < '0' + kVectorArgumentsMax;
  const bool is_single = name.size() == 5;
  if (!is_number || (is_single && !same_word(name.substr(4), "f"))) return {};
  VectorName result{.number = static_cast<uint16_t>(name[3] - '0')};
  if (is_single) result.type.size_bytes = 4;
  return result;
}

constexpr uint16_t kInputsMax = 256;

constexpr std::string_view kAgeName = "age";
constexpr std::string_view kWeightName = "weight";

// The index of the input with these expressions, which is added if it is new. kInputsMax: too many.
uint16_t input_of(Stream& stream, Input input, const std::vector<Expression>& expressions) {
  const auto is_same = [&](size_t index) {
    bool same = stream.inputs[index].type == input.type;
    for (size_t i = 0; same && i < expressions.size(); ++i) {
      same = stream.sources[i].source.inputs[index] == expressions[i];
    }
    return same;
  };
  for (size_t index = 0; index < stream.inputs.size(); ++index) {
    if (is_same(index)) return static_cast<uint16_t>(index);
  }
  if (stream.inputs.size() == kInputsMax) return kInputsMax;
  for (size_t i = 0; i < expressions.size(); ++i) {
    stream.sources[i].source.inputs.push_back(expressions[i]);
  }
  stream.inputs.push_back(std::move(input));
  return static_cast<uint16_t>(stream.inputs.size() - 1);
}

}  // namespace

// --- unions --------------------------------------------------------------------------------------

// The name at the root of a chain of members, when it is an event with several sources: the chain
// is then evaluated for each source by itself.
const SyntaxExpression* Evaluator::union_root(const SyntaxExpression& syntax) const {
  const bool is_chain = syntax.kind == SyntaxKind::Member || syntax.kind == SyntaxKind::Index ||
                        syntax.kind == SyntaxKind::Call;
  if (!is_chain) return nullptr;
  const SyntaxExpression* root = &syntax;
  while (root->kind == SyntaxKind::Member || root->kind == SyntaxKind::Index ||
         root->kind == SyntaxKind::Call) {
    root = &root->kids[0];
  }
  if (root->kind != SyntaxKind::Name) return nullptr;
  const Value* value = find(root->text);
  const bool is_union = value != nullptr && value->kind == Value::Kind::Event &&
                        value->source == -1 && build_.streams[value->stream].sources.size() > 1;
  const bool is_callee = syntax.kind == SyntaxKind::Call && &syntax.kids[0] == root;
  return is_union && !is_callee ? root : nullptr;
}

Expected<Value> Evaluator::per_source(const SyntaxExpression& syntax, std::string_view root,
                                      const Value& event) {
  std::vector<Value> values;
  const size_t count = build_.streams[event.stream].sources.size();
  for (size_t i = 0; i < count; ++i) {
    Value one = event;
    one.source = static_cast<int>(i);
    scope_.push_back({.name = std::string(root), .value = one});
    Expected<Value> value = evaluate(syntax);
    scope_.pop_back();
    values.push_back(CLEW_TRY(std::move(value)));
  }
  return merge(syntax, event.stream, std::move(values));
}

// One value for all sources: the value itself where all agree, else an Input.
Expected<Value> Evaluator::merge(const SyntaxExpression& syntax, uint16_t stream,
                                 std::vector<Value> values) {
  for (Value& value : values) {
    value.source = -1;
  }
  bool agrees = true;
  for (const Value& value : values) {
    agrees = agrees && value == values.front();
  }
  if (agrees) return values.front();
  std::vector<Expression> expressions;
  expressions.reserve(values.size());
  for (Value& value : values) {
    expressions.push_back(CLEW_TRY(to_scalar(std::move(value), syntax.span)));
  }
  Type type = expressions[0].type;
  for (const Expression& expression : expressions) {
    const bool is_numeric = is_number(expression) && is_number(expressions[0]);
    if (!is_numeric && expression.type.kind != type.kind) {
      return fail(syntax.span, fmt::format("this is {} at one source and {} at another",
                                           name_of(type), name_of(expression.type)));
    }
    const bool is_same =
        same_representation(type, expression.type) && type.unit == expression.type.unit;
    const uint16_t capacity = std::max(type.capacity_bytes, expression.type.capacity_bytes);
    if (is_numeric && !is_same) type = common_type(type, expression.type);
    type.capacity_bytes = capacity;
  }
  for (Expression& expression : expressions) {
    if (is_number(expression)) expression = convert(std::move(expression), type);
  }
  const std::string name = derived_name(syntax, build_.report.text().text);
  Expression input;
  input.kind = ExpressionKind::Input;
  input.type = type;
  input.index = input_of(build_.streams[stream], {.name = name, .type = type}, expressions);
  input.stream = stream;
  if (input.index == kInputsMax) {
    return fail(syntax.span,
                fmt::format("the sources differ in more than {} expressions", kInputsMax));
  }
  return finish(scalar_value(std::move(input)), syntax.span);
}

ResolvedSource& Evaluator::source_of(const Value& event) {
  const size_t index = event.source < 0 ? 0 : static_cast<size_t>(event.source);
  CLEW_ASSERT(index < build_.streams[event.stream].sources.size());
  return build_.streams[event.stream].sources[index];
}

// --- names of an event ---------------------------------------------------------------------------

Expected<Value> Evaluator::event_member(const Value& event, std::string_view name, Span span) {
  Value part = event;
  if (same_word(name, "args")) {
    part.kind = Value::Kind::Arguments;
    return part;
  }
  if (same_word(name, "entry")) {
    part.kind = Value::Kind::Entry;
    return part;
  }
  const bool is_of_outstanding = event.stream == 0 && is_outstanding(build_.query);
  if (same_word(name, kAgeName) && is_of_outstanding && !has_own_export(event, name))
    return age(span);
  if (same_word(name, kWeightName) && is_of_outstanding && !has_own_export(event, name)) {
    const auto weight = static_cast<int64_t>(build_.query.joins[0].within->one_in);
    return scalar_value(integer_constant(weight, kInt64, at(span)));
  }
  return source_member(event, name, span);
}

bool Evaluator::has_own_export(const Value& event, std::string_view name) {
  const std::vector<Export>& own = source_of(event).exports;
  return std::any_of(own.begin(), own.end(),
                     [name](const Export& each) { return same_word(each.name, name); });
}

// Of what is outstanding: up to the moment that the row is of.
Expected<Value> Evaluator::age(Span span) {
  std::vector<Expression> times;
  for (const uint16_t stream : {uint16_t{1}, uint16_t{0}})
    times.push_back(field_expression(Field::Time, 0, stream, at(span)));
  return scalar_value(
      CLEW_TRY(make_binary(build_.report, BinaryOperator::Subtract, std::move(times), at(span))));
}

Expected<Value> Evaluator::source_member(const Value& event, std::string_view name, Span span) {
  const ResolvedSource& source = source_of(event);
  for (const Export& candidate : source.exports) {
    if (same_word(candidate.name, name)) return exported(event, Export(candidate), span);
  }
  const SourceKind kind = source.source.kind;
  if (kind == SourceKind::Recording) return recording_member(event, name, span);
  const std::optional<uint64_t> number = argument_number(name);
  if (number) return argument(event, *number, span);
  for (const std::string_view known : kernel_names(kind)) {
    if (same_word(known, name)) return kernel_member(event, known, span);
  }
  if (vector_name(name) && !is_kernel_source(kind)) return vector(event, name, span);
  const FieldInfo* field = find_field(name);
  if (field != nullptr && field->field == Field::ReturnValue) return return_value(event, span);
  if (field != nullptr && field->field != Field::Argument && !is_of_owner(field->field)) {
    return field_of(event, field->field, 0, span);
  }
  const Parameter* const parameter = parameter_named(event, name);
  if (parameter != nullptr) return typed_argument(event, Parameter(*parameter), span);
  if (field != nullptr && is_of_owner(field->field)) return field_of(event, field->field, 0, span);
  return fail_no_field(event, name, span);
}

const Parameter* Evaluator::parameter_named(const Value& event, std::string_view name) {
  const bool has_arguments = has_field(source_of(event).source.kind, Field::Argument);
  if (!has_arguments || !parameters_of(event).has_value()) return nullptr;
  const std::vector<Parameter>& all = *parameters_of(event);
  const auto found = std::find_if(all.begin(), all.end(),
                                  [name](const Parameter& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

Expected<Value> Evaluator::recording_member(const Value& event, std::string_view name, Span span) {
  const RecordingFieldInfo* const own =
      find_recording_field(source_of(event).source.recorded, name);
  if (own != nullptr) {
    Expression expression = field_expression(Field::Argument, static_cast<uint16_t>(own->field),
                                             event.stream, at(span));
    expression.type = own->type;
    return scalar_value(std::move(expression));
  }
  for (const Field field : plain_recording_fields()) {
    if (same_word(info(field).name, name)) return field_of(event, field, 0, span);
  }
  return fail_no_field(event, name, span);
}

tl::unexpected<Error> Evaluator::fail_no_field(const Value& event, std::string_view name,
                                               Span span) {
  const ResolvedSource& source = source_of(event);
  if (is_unsupported(source.source)) return fail_unsupported(build_.report, source.source);
  const std::vector<std::string> known = names_of(event);
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string hint = did_you_mean(name, names);
  const bool may_be_argument = hint.empty() && has_field(source.source.kind, Field::Argument) &&
                               !parameters_of(event).has_value();
  const std::string why =
      may_be_argument ? fmt::format("; {}", parameters_of(event).error().message) : "";
  return fail(span, fmt::format("{} exports no '{}'{}{}", shown_source(source), name, hint, why));
}

// As the user wrote it: a tracepoint by its name, except inside its own exports.
std::string Evaluator::shown_source(const ResolvedSource& source) const {
  if (source.tracepoint.empty() || !context_.empty()) return print(source.source);
  return fmt::format("tracepoint '{}'", source.tracepoint);
}

std::vector<std::string> Evaluator::names_of(const Value& event) {
  const ResolvedSource& source = source_of(event);
  std::vector<std::string> names;
  names.reserve(source.exports.size());
  for (const Export& candidate : source.exports) {
    names.push_back(candidate.name);
  }
  if (source.source.kind == SourceKind::Recording) {
    const std::vector<std::string> own = recording_names(source.source.recorded);
    names.insert(names.end(), own.begin(), own.end());
    return names;
  }
  const bool has_arguments = has_field(source.source.kind, Field::Argument);
  if (has_arguments && parameters_of(event).has_value()) {
    for (const Parameter& candidate : *parameters_of(event)) {
      names.push_back(candidate.name);
    }
  }
  for (const FieldInfo& field : fields()) {
    const bool is_numbered = field.field == Field::Argument || field.field == Field::EntryArgument;
    if (!is_numbered) names.emplace_back(field.name);
  }
  for (const FieldAlias& alias : field_aliases())
    names.emplace_back(alias.name);
  if (event.stream == 0 && is_outstanding(build_.query)) {
    names.emplace_back(kAgeName);
    names.emplace_back(kWeightName);
  }
  const bool is_kernel = is_kernel_source(source.source.kind);
  for (const std::string_view known : kernel_names(source.source.kind))
    names.emplace_back(known);
  const unsigned count = is_kernel ? kernel_arguments(source.source.kind) : kArgumentsMax;
  for (unsigned i = 0; has_arguments && i < count; ++i) {
    names.push_back(fmt::format("arg{}", i));
  }
  return names;
}

bool Evaluator::exports(const Value& event, std::string_view name) {
  if (build_.streams[event.stream].sources.empty()) return false;
  const std::vector<std::string> names = names_of(event);
  return std::any_of(names.begin(), names.end(),
                     [name](const std::string& known) { return same_word(known, name); });
}

// The expression of a tracepoint's export, over the bare names of this event.
Expected<Value> Evaluator::exported(const Value& event, const Export& what, Span span) {
  const ResolvedSource& source = source_of(event);
  Names nothing;
  Evaluator inner(build_, nothing);
  inner.implicit_event_ = event;
  if (implicit_event_) {
    return fail(span, fmt::format("the export '{}' refers to another export", what.name));
  }
  if (source.is_from_vocabulary) {
    inner.fixed_span_ = at(span);
    inner.context_ = fmt::format("in tracepoint '{}', export '{}'", source.tracepoint, what.name);
  }
  return inner.evaluate(what.expression);
}

Expected<Value> Evaluator::field_of(const Value& event, Field field, uint16_t index, Span span) {
  const ResolvedSource& source = source_of(event);
  if (!has_field(source.source.kind, field)) {
    if (is_unsupported(source.source)) return fail_unsupported(build_.report, source.source);
    const bool is_argument = field == Field::Argument || field == Field::EntryArgument;
    const std::string name =
        is_argument ? argument_name(field, index) : std::string(info(field).name);
    const bool has_entry = has_field(source.source.kind, Field::EntryArgument);
    const std::string hint = field == Field::Argument && has_entry
                                 ? fmt::format("; did you mean 'entry.{}'?", name)
                                 : "";
    const bool is_vector = field == Field::Argument && index >= kVectorArgument;
    const std::string_view where = is_vector ? "entry, offset, line" : info(field).where;
    return fail(span, fmt::format("'{}' exists at {} only, not at {}{}", name, where,
                                  shown_source(source), hint));
  }
  return scalar_value(field_expression(field, index, event.stream, at(span)));
}

Expected<Value> Evaluator::default_columns(uint16_t stream, Span span) {
  Value record = value_of_kind(Value::Kind::Record);
  Value event = value_of_kind(Value::Kind::Event);
  event.stream = stream;
  if (source_of(event).source.kind == SourceKind::Recording) {
    for (const std::string_view name : {"tid", "order", "function", "file", "line"}) {
      Value value = CLEW_TRY(source_member(event, name, span));
      record.members.push_back({.name = std::string(name), .value = std::move(value)});
    }
    return record;
  }
  for (const Field field : {Field::Time, Field::Pid, Field::Tid, Field::Function, Field::Probe}) {
    bool is_everywhere = true;
    for (const ResolvedSource& source : build_.streams[stream].sources) {
      is_everywhere = is_everywhere && has_field(source.source.kind, field);
    }
    const bool is_twice = field == Field::Probe && record.members.size() > 1;
    if (!is_everywhere || is_twice) continue;
    Value value = CLEW_TRY(field_of(event, field, 0, span));
    record.members.push_back({.name = std::string(info(field).name), .value = std::move(value)});
  }
  if (stream == 0 && is_outstanding(build_.query))
    record.members.push_back({.name = std::string(kAgeName), .value = CLEW_TRY(age(span))});
  return record;
}

// --- arguments and return values -----------------------------------------------------------------

const Expected<std::vector<Parameter>>& Evaluator::parameters_of(const Value& event) {
  ResolvedSource& source = source_of(event);
  if (!source.parameters) {
    TypeSource* types = build_.environment.types;
    if (source.source.kind == SourceKind::Usdt) {
      source.parameters = Expected<std::vector<Parameter>>(clew::fail(
          ErrorCode::NotFound, "arguments of USDT probes have no names but arg0 to arg5"));
    } else if (types == nullptr) {
      source.parameters = Expected<std::vector<Parameter>>(clew::fail(
          ErrorCode::NotFound, "names of arguments need debug information of a process"));
    } else {
      source.parameters = types->parameters(source.source);
    }
  }
  return *source.parameters;
}

Expected<Value> Evaluator::argument(const Value& event, uint64_t index, Span span) {
  if (index >= kArgumentsMax) {
    return fail(span, fmt::format("arguments go from arg0 to arg{}", kArgumentsMax - 1));
  }
  const SourceKind kind = source_of(event).source.kind;
  if (is_kernel_source(kind) && index >= kernel_arguments(kind)) {
    return fail_argument_count(event, span);
  }
  const bool is_entry = event.kind == Value::Kind::Entry;
  const Field field = is_entry ? Field::EntryArgument : Field::Argument;
  const auto number = static_cast<uint16_t>(index);
  Value raw = CLEW_TRY(field_of(event, field, number, span));
  if (kind == SourceKind::Profile) return scalar_value(sampled_address(event, number, span));
  const bool is_typed = kind == SourceKind::Entry || kind == SourceKind::Syscall ||
                        kind == SourceKind::Kernel || is_entry;
  if (!is_typed || !parameters_of(event).has_value()) return raw;
  for (const Parameter& candidate : *parameters_of(event)) {
    const bool is_other = candidate.index != number || candidate.is_pair;
    if (!candidate.refusal.empty() || is_other) continue;
    Value typed = CLEW_TRY(from_register(std::move(raw.expression), foreign(candidate.type), span));
    typed.adds_bytes = true;
    return typed;
  }
  return raw;
}

// A vector register's low half, whatever the types say. At a return xmm0 is a result.
Expected<Value> Evaluator::vector(const Value& event, std::string_view name, Span span) {
  const VectorName wanted = *vector_name(name);
  const bool is_entry = event.kind == Value::Kind::Entry;
  const bool is_result =
      !is_entry && source_of(event).source.kind == SourceKind::Return && wanted.number == 0;
  const auto index = static_cast<uint16_t>(kVectorArgument + wanted.number);
  const Field argument = is_entry ? Field::EntryArgument : Field::Argument;
  Value raw = CLEW_TRY(is_result ? field_of(event, Field::ReturnValue, 0, span)
                                 : field_of(event, argument, index, span));
  raw.expression.type = wanted.type;
  return raw;
}

// A member of `entry`: a register by its name, or a parameter by its own.
Expected<Value> Evaluator::entry_member(const Value& event, std::string_view name, Span span) {
  if (same_word(name, "args")) {
    Value arguments = event;
    arguments.kind = Value::Kind::EntryArguments;
    return arguments;
  }
  const std::optional<uint64_t> number = argument_number(name);
  if (number) return argument(event, *number, span);
  const bool has_vectors = !is_kernel_source(source_of(event).source.kind);
  if (vector_name(name) && has_vectors) return vector(event, name, span);
  return parameter(event, name, span);
}

// args.name and entry.args.name
Expected<Value> Evaluator::parameter(const Value& event, std::string_view name, Span span) {
  const bool is_entry =
      event.kind == Value::Kind::Entry || event.kind == Value::Kind::EntryArguments;
  const Field field = is_entry ? Field::EntryArgument : Field::Argument;
  if (!has_field(source_of(event).source.kind, field)) {
    if (is_unsupported(source_of(event).source)) {
      return fail_unsupported(build_.report, source_of(event).source);
    }
    return fail(span, is_entry ? "entry.args exists at return and exception only"
                               : fmt::format("args exists at entry, offset and line only; did you "
                                             "mean 'entry.args.{}'?",
                                             name));
  }
  const Expected<std::vector<Parameter>>& known = parameters_of(event);
  if (!known) return fail(span, known.error().message);
  std::vector<std::string_view> names;
  for (const Parameter& candidate : *known) {
    if (candidate.name == name) return typed_argument(event, candidate, span);
    names.push_back(candidate.name);
  }
  return fail(span, fmt::format("{} has no argument '{}'{}", shown_source(source_of(event)), name,
                                did_you_mean(name, names)));
}

Expected<Value> Evaluator::typed_argument(const Value& event, const Parameter& parameter,
                                          Span span) {
  if (!parameter.refusal.empty()) {
    return fail(span, fmt::format("the argument '{}' cannot be read: {}", parameter.name,
                                  parameter.refusal));
  }
  if (parameter.place != ParameterPlace::Argument) return recorded(event, parameter, span);
  const bool is_entry =
      event.kind == Value::Kind::Entry || event.kind == Value::Kind::EntryArguments;
  const Field field = is_entry ? Field::EntryArgument : Field::Argument;
  Value raw = CLEW_TRY(field_of(event, field, parameter.index, span));
  const CTypeInfo type = build_.types.describe(foreign(parameter.type));
  const bool is_record =
      type.kind == CKind::Record && type.size_bytes <= (parameter.is_pair ? 16 : 8);
  if (!is_record) return from_register(std::move(raw.expression), foreign(parameter.type), span);
  Value registers = value_of_kind(Value::Kind::Registers);
  registers.c_type = foreign(parameter.type);
  registers.members.push_back({.name = "low", .value = std::move(raw)});
  if (!parameter.is_pair) return registers;
  const auto next = static_cast<uint16_t>(parameter.index + 1);
  registers.members.push_back(
      {.name = "high", .value = CLEW_TRY(field_of(event, field, next, span))});
  return registers;
}

Expected<Value> Evaluator::return_value(const Value& event, Span span) {
  Value raw = CLEW_TRY(field_of(event, Field::ReturnValue, 0, span));
  TypeSource* types = build_.environment.types;
  const ResolvedSource& source = source_of(event);
  const SourceKind kind = source.source.kind;
  const bool is_typed = kind == SourceKind::Return || kind == SourceKind::KernelReturn;
  if (types == nullptr || !is_typed) return raw;
  const Expected<TypeHandle> type = types->return_type(source.source);
  if (!type) return raw;
  if (*type == 0) return fail(span, fmt::format("{} returns void", print(source.source)));
  Value typed = CLEW_TRY(from_register(std::move(raw.expression), foreign(*type), span));
  typed.adds_bytes = true;
  return typed;
}

// A value of a C type that a register holds.
Expected<Value> Evaluator::from_register(Expression raw, const CTypeRef& type, Span span) {
  const CTypeInfo known = build_.types.describe(type);
  switch (known.kind) {
    case CKind::Integer:
    case CKind::Boolean:
    case CKind::Enumeration:
    case CKind::Pointer:
      return scalar_value(convert(std::move(raw), known.type), type);
    case CKind::Float:
      raw.type = known.type;
      return scalar_value(std::move(raw), type);
    case CKind::Record:
    case CKind::Array:
      return fail(span,
                  fmt::format("'{}' passed by value is not part of this version yet", known.name));
    case CKind::Function:
    case CKind::Other:
      if (known.size_bytes > 8) {  // long double, __int128
        return fail(span, fmt::format("a value of type '{}' cannot be read", known.name));
      }
      break;
    case CKind::Void:
      break;
  }
  return scalar_value(std::move(raw));
}

}  // namespace clew::query
