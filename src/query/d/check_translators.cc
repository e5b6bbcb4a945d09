// SPDX-License-Identifier: Apache-2.0
// Inlines and translators. Both are checked once, with their parameters as leaves of their own;
// a use is a copy in which those leaves are replaced by what was passed. A translated object is a
// Translate node until a member of it is selected.
#include <iterator>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "query/d/check_conversion.h"
#include "query/d/check_expression.h"
#include "query/d/check_prototypes.h"
#include "query/walk.h"

namespace clew::query::d::checking {
namespace {

// Translators may use translators, but not without end.
constexpr uint32_t kExpansionDepthMax = 16;
// An inline that has another one twice is twice as large as that one, and so on.
constexpr uint64_t kExpandedNodesMax = 1U << 18;

// The library's own definitions have no line: a kernel that lacks something only misses it.
bool is_of_library(uint32_t line) {
  return line == 0;
}

void substitute(Node& value, const Node& place, std::span<const Node> arguments) {
  transform(value, [&](Node& node) {
    if (node.storage == Storage::Parameter) {
      node = arguments[node.index];
      return true;
    }
    node.span = place.span;
    node.line = place.line;
    return false;
  });
}

// Of a value whose parameters have these sizes.
uint64_t nodes_of(const Node& node, std::span<const uint64_t> argument_nodes) {
  if (node.storage == Storage::Parameter && node.index < argument_nodes.size())
    return argument_nodes[node.index];
  uint64_t nodes = 1;
  for (const Node& operand : node.operands)
    nodes += nodes_of(operand, argument_nodes);
  return nodes;
}

// The definition's value as it is used at `place`.
Compiled<Node> expand(Context& context, const Node& definition, const Node& place,
                      std::span<const Node> arguments) {
  std::vector<uint64_t> argument_nodes;
  for (const Node& argument : arguments)
    argument_nodes.push_back(nodes_of(argument, {}));
  context.expanded_nodes += nodes_of(definition, argument_nodes);
  if (context.expanded_nodes > kExpandedNodesMax) {
    return error_at(place, "D_NOMEM",
                    fmt::format("inlines and translators make the program larger than {} "
                                "operations",
                                kExpandedNodesMax));
  }
  Node value = definition;
  substitute(value, place, arguments);
  return value;
}

// A definition sees its parameters, and no clause.
class DefinitionScope {
 public:
  DefinitionScope(Context& context, std::vector<TypeParameter> parameters)
      : context_(context),
        parameters_(std::move(context.parameters)),
        clause_(context.clause),
        stability_(std::exchange(context.stability, {})) {
    context.parameters = std::move(parameters);
    context.clause = nullptr;
    ++context.expansion_depth;
  }
  ~DefinitionScope() {
    context_.parameters = std::move(parameters_);
    context_.clause = clause_;
    context_.stability = stability_;
    --context_.expansion_depth;
  }
  DefinitionScope(const DefinitionScope&) = delete;
  DefinitionScope& operator=(const DefinitionScope&) = delete;

 private:
  Context& context_;
  std::vector<TypeParameter> parameters_;
  const Clause* clause_;
  Stability stability_;
};

// What a translated object is, behind the pointer if there is one.
TypeId translated_record(TypeTable& types, TypeId type) {
  const TypeId target = pointee(types, type);
  return types.complete(types.strip(target == kNoType ? type : target));
}

bool is_definable(const TypeTable& types, TypeId type, const Node& value) {
  if (value.kind == NodeKind::Translate) return is_same(types, type, value.type);
  if (types.is_string_like(type) && types.is_string_like(value.type)) return true;
  if (is_array(types, type)) return is_same(types, type, value.type);
  return is_argument_compatible(types, type, value);
}

void convert_definition(TypeTable& types, Node& value, TypeId type) {
  if (value.kind == NodeKind::Translate) return;
  const bool is_text = is_array(types, type) && types.is_string_like(type);
  convert_for(types, value, is_text ? types.string_type() : type);
}

Compiled<void> check_translator_member(Context& context, const KnownTranslator& translator,
                                       KnownTranslator::Member& member) {
  TypeTable& types = context.types();
  if (member.is_checked) return {};
  const auto place = types.member(translator.output, member.name);
  if (!place) {
    return compile_error("D_XLATE_MEMB",
                         fmt::format("translator member {} is not a member of {}", member.name,
                                     types.name_of(translator.output)),
                         member.line);
  }
  const DefinitionScope scope(context, {{translator.parameter, translator.input}});
  if (context.expansion_depth > kExpansionDepthMax) {
    return compile_error("D_XLATE_MEMB",
                         fmt::format("translator member {} is defined by itself", member.name),
                         member.line);
  }
  Node value = member.value;
  CLEW_TRY(check_expression(context, value));
  if (!is_definable(types, place->type, value)) {
    return error_at(member.value, "D_XLATE_INCOMPAT",
                    fmt::format("translator member {} definition uses incompatible types: "
                                "\"{}\" = \"{}\"",
                                member.name, types.name_of(place->type), shown_type(types, value)));
  }
  convert_definition(types, value, place->type);
  member.value = std::move(value);
  member.stability = context.stability;
  member.is_checked = true;
  return {};
}

Compiled<void> check_selector(Context& context, const Node& node) {
  const Node& object = node.operands[0];
  const bool is_pointer = pointee(context.types(), object.type) != kNoType;
  if (node.kind == NodeKind::Arrow && !is_pointer) {
    return error_at(node, "D_OP_PTR", "operator -> must be applied to a pointer");
  }
  if (node.kind == NodeKind::Member && is_pointer) {
    return error_at(node, "D_OP_SOU",
                    fmt::format("operator . cannot be applied to type \"{}\"; must be applied to "
                                "a struct or union",
                                shown_type(context.types(), object)));
  }
  return {};
}

KnownTranslator::Member* find_member(KnownTranslator& translator, std::string_view name) {
  for (KnownTranslator::Member& member : translator.members) {
    if (member.name == name) return &member;
  }
  return nullptr;
}

Compiled<void> check_translator_types(Context& context, const Translator& translator) {
  TypeTable& types = context.types();
  const TypeId output = translated_record(types, translator.output);
  if (!types.is_record(output) || pointee(types, translator.output) != kNoType) {
    return compile_error("D_XLATE_SOU", "translator output type must be a struct or union",
                         translator.line);
  }
  if (!is_of_library(translator.line) &&
      find_translator(context, translator.input, translator.output) != nullptr) {
    return compile_error(
        "D_XLATE_REDECL",
        fmt::format("translator from {} to {} has already been declared",
                    types.name_of(translator.input), types.name_of(translator.output)),
        translator.line);
  }
  return {};
}

Compiled<void> check_inline_value(Context& context, const InlineDefinition& definition, Node& value,
                                  Stability& stability) {
  TypeTable& types = context.types();
  const DefinitionScope scope(context, definition.parameters);
  CLEW_TRY(check_expression(context, value));
  if (!is_definable(types, definition.type, value)) {
    return compile_error(
        "D_OP_INCOMPAT",
        fmt::format("inline {} definition uses incompatible types: \"{}\" = "
                    "\"{}\"",
                    definition.name, types.name_of(definition.type), shown_type(types, value)),
        definition.line);
  }
  convert_definition(types, value, definition.type);
  const auto declared = context.attributes.find(definition.name);
  stability = declared == context.attributes.end() ? context.stability : declared->second;
  return {};
}

}  // namespace

KnownTranslator* find_translator(Context& context, TypeId input, TypeId output) {
  TypeTable& types = context.types();
  const TypeId record = translated_record(types, output);
  for (KnownTranslator& translator : context.translators) {
    if (is_same(types, translated_record(types, translator.output), record) &&
        is_same(types, translator.input, input)) {
      return &translator;
    }
  }
  return nullptr;
}

Compiled<void> check_translate(Context& context, Node& node) {
  TypeTable& types = context.types();
  Node& input = node.operands[0];
  CLEW_TRY(check_value(context, input));
  if (is_array(types, input.type)) decay(types, input);
  if (find_translator(context, input.type, node.type) != nullptr) return {};
  return error_at(node, "D_XLATE_NONE",
                  fmt::format("cannot translate from \"{}\" to \"{}\"", shown_type(types, input),
                              types.name_of(node.type)));
}

Compiled<void> expand_translated_member(Context& context, Node& node) {
  TypeTable& types = context.types();
  CLEW_TRY(check_selector(context, node));
  const Node& object = node.operands[0];
  const TypeId record = translated_record(types, object.type);
  if (!types.member(record, node.name)) {
    return error_at(node, "D_TYPE_MEMBER",
                    fmt::format("{} is not a member of {}", node.name, types.name_of(record)));
  }
  KnownTranslator* translator = find_translator(context, object.operands[0].type, object.type);
  KnownTranslator::Member* member =
      translator == nullptr ? nullptr : find_member(*translator, node.name);
  if (member == nullptr) {
    return error_at(node, "D_XLATE_NOCONV",
                    "translator does not define conversion for member: " + node.name);
  }
  auto checked = check_translator_member(context, *translator, *member);
  if (!checked && is_of_library(checked.error().line)) {
    checked.error().line = node.line;
    checked.error().span = node.span;
  }
  if (!checked) return Failure(std::move(checked).error());
  CLEW_TRY(note_stability(context, node, member->stability, "translator member " + node.name));
  Node value = CLEW_TRY(expand(context, member->value, node, object.operands));
  node = std::move(value);
  return {};
}

// Each member that the translator defines becomes an operand: a Member whose operand is its value.
// What the library cannot say on this kernel stays 0.
Compiled<void> expand_translated_object(Context& context, Node& node) {
  TypeTable& types = context.types();
  KnownTranslator* translator = find_translator(context, node.operands[0].type, node.type);
  if (translator == nullptr) return {};
  const std::vector<Node> input = std::move(node.operands);
  node.operands.clear();
  for (KnownTranslator::Member& member : translator->members) {
    auto checked = check_translator_member(context, *translator, member);
    if (!checked && is_of_library(checked.error().line)) continue;
    if (!checked) return Failure(std::move(checked).error());
    Node one;
    one.kind = NodeKind::Member;
    one.name = member.name;
    one.line = node.line;
    one.span = node.span;
    one.member = *types.member(translator->output, member.name);
    one.type = one.member.type;
    Node value = CLEW_TRY(expand(context, member.value, node, input));
    CLEW_TRY(finish_value(context, value));
    one.operands.push_back(std::move(value));
    node.operands.push_back(std::move(one));
  }
  return {};
}

Compiled<void> check_inline_use(Context& context, Node& node, const KnownInline& definition,
                                std::vector<Node> arguments) {
  TypeTable& types = context.types();
  const std::string name = node.kind == NodeKind::Index ? node.operands[0].name : node.name;
  for (Node& argument : arguments)
    CLEW_TRY(check_value(context, argument));
  Prototype prototype;
  for (const TypeParameter& parameter : definition.parameters) {
    prototype.parameters.push_back({types.name_of(parameter.type), parameter.type});
  }
  prototype.required = static_cast<uint32_t>(definition.parameters.size());
  CLEW_TRY(note_stability(context, node, definition.stability, "inline " + name));
  const bool is_array = node.kind != NodeKind::Call;
  CLEW_TRY(check_arguments(context, node, {name, is_array}, prototype, arguments));
  Node value = CLEW_TRY(expand(context, definition.value, node, arguments));
  node = std::move(value);
  return {};
}

Compiled<void> define_inline(Context& context, InlineDefinition definition) {
  const bool is_library = is_of_library(definition.line);
  const auto known = context.inlines.find(definition.name);
  const bool is_taken = (known != context.inlines.end() && !known->second.is_of_library) ||
                        context.variables.contains({VariableScope::Global, definition.name}) ||
                        (find_builtin(definition.name) && !is_library) ||
                        (find_subroutine(definition.name) && !is_library) ||
                        find_action(definition.name);
  if (is_taken) {
    const bool is_inline = known != context.inlines.end();
    return compile_error("D_DECL_IDRED",
                         fmt::format("identifier redefined: {}\n\t current: inline definition\n"
                                     "\tprevious: scalar {}",
                                     definition.name, is_inline ? "inline" : ""),
                         definition.line);
  }
  Node value = std::move(definition.value);
  Stability stability;
  auto checked = check_inline_value(context, definition, value, stability);
  if (!checked && is_library) return {};
  if (!checked) return Failure(std::move(checked).error());
  KnownInline made{definition.type, std::move(definition.parameters), std::move(value), is_library,
                   stability};
  context.inlines.insert_or_assign(std::move(definition.name), std::move(made));
  return {};
}

Compiled<void> define_translator(Context& context, Translator translator) {
  CLEW_TRY(check_translator_types(context, translator));
  const bool is_library = is_of_library(translator.line);
  KnownTranslator known;
  known.output = translated_record(context.types(), translator.output);
  known.input = translator.input;
  known.parameter = translator.parameter;
  for (Translator::Member& member : translator.members) {
    known.members.push_back(
        {std::move(member.name), std::move(member.value), member.line, false, {}});
    if (is_library) continue;
    CLEW_TRY(check_translator_member(context, known, known.members.back()));
  }
  context.translators.push_back(std::move(known));
  return {};
}

}  // namespace clew::query::d::checking
