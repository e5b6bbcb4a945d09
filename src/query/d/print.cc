// SPDX-License-Identifier: Apache-2.0
// Tree -> text. Recursion is bounded by the parser's limits on nesting and operators.
#include "query/d/print.h"

#include <array>

#include <fmt/format.h>

namespace clew::query::d {
namespace {

std::string suffix_of(std::string_view type_name) {
  if (type_name == "unsigned int") return "u";
  if (type_name == "long") return "l";
  if (type_name == "unsigned long") return "ul";
  if (type_name == "long long") return "ll";
  if (type_name == "unsigned long long") return "ull";
  return "";
}

class Printer {
 public:
  explicit Printer(const TypeTable& types) : types_(types) {}

  [[nodiscard]] std::string expression(const Node& node) const {
    const auto& of = node.operands;
    switch (node.kind) {
      case NodeKind::Integer:
        return integer(node);
      case NodeKind::String:
        return fmt::format("\"{}\"", escape(node.text));
      case NodeKind::Identifier:
        return identifier(node);
      case NodeKind::Aggregation:
        return of.empty() ? fmt::format("@{}", node.name)
                          : fmt::format("@{}[{}]", node.name, list(of, 0));
      case NodeKind::Index:
        return fmt::format("{}[{}]", expression(of[0]), list(of, 1));
      case NodeKind::Call:
        return fmt::format("{}({})", identifier(node), list(of, 0));
      case NodeKind::Member:
        return fmt::format("{}.{}", expression(of[0]), node.name);
      case NodeKind::Arrow:
        return fmt::format("{}->{}", expression(of[0]), node.name);
      case NodeKind::Unary:
        return unary(node);
      case NodeKind::Binary:
        return fmt::format("({} {} {})", expression(of[0]), symbol_of(node.binary),
                           expression(of[1]));
      case NodeKind::Assign:
        return fmt::format("({} {}= {})", expression(of[0]),
                           node.is_compound ? symbol_of(node.binary) : "", expression(of[1]));
      case NodeKind::Conditional:
        return fmt::format("({} ? {} : {})", expression(of[0]), expression(of[1]),
                           expression(of[2]));
      case NodeKind::Comma:
        return fmt::format("({}, {})", expression(of[0]), expression(of[1]));
      case NodeKind::Cast:
        return fmt::format("(({}) {})", types_.name_of(node.type), expression(of[0]));
      case NodeKind::SizeOf:
        return fmt::format("sizeof({})",
                           of.empty() ? types_.name_of(node.type) : expression(of[0]));
      case NodeKind::OffsetOf:
        return fmt::format("offsetof({}, {})", types_.name_of(node.type), node.name);
      case NodeKind::StringOf:
        return fmt::format("stringof({})", expression(of[0]));
      case NodeKind::Translate:
        return fmt::format("xlate <{}>({})", types_.name_of(node.type), expression(of[0]));
    }
    return "";
  }

  [[nodiscard]] std::string statement(const Statement& one) const {
    if (one.kind != StatementKind::If) return expression(one.expression) + ";";
    std::string text = fmt::format("if ({}) {}", expression(one.expression), block(one.then_part));
    if (!one.else_part.empty()) text += " else " + block(one.else_part);
    return text;
  }

  [[nodiscard]] std::string block(const std::vector<Statement>& statements) const {
    std::string text = "{";
    for (const Statement& each : statements)
      text += " " + statement(each);
    return text + " }";
  }

 private:
  [[nodiscard]] std::string integer(const Node& node) const {
    if (node.type != kNoType && types_.is_signed(node.type)) {
      return fmt::format("{}{}", static_cast<int64_t>(node.integer),
                         suffix_of(types_.at(node.type).name));
    }
    return fmt::format("{}{}", node.integer,
                       node.type == kNoType ? "" : suffix_of(types_.at(node.type).name));
  }

  [[nodiscard]] static std::string identifier(const Node& node) {
    if (node.module.empty()) return node.name;
    if (node.module == "self" || node.module == "this")
      return fmt::format("{}->{}", node.module, node.name);
    return fmt::format("{}`{}", node.module == " " ? "" : node.module, node.name);
  }

  [[nodiscard]] std::string unary(const Node& node) const {
    const bool is_behind =
        node.unary == UnaryOperator::PostIncrement || node.unary == UnaryOperator::PostDecrement;
    const std::string operand = expression(node.operands[0]);
    return is_behind ? fmt::format("({}{})", operand, symbol_of(node.unary))
                     : fmt::format("({}{})", symbol_of(node.unary), operand);
  }

  [[nodiscard]] std::string list(const std::vector<Node>& nodes, size_t first) const {
    std::string text;
    for (size_t i = first; i < nodes.size(); ++i)
      text += (i == first ? "" : ", ") + expression(nodes[i]);
    return text;
  }

  const TypeTable& types_;
};

std::string clause(const Clause& clause, const TypeTable& types) {
  std::string text;
  for (const ProbeDescription& probe : clause.probes)
    text += (text.empty() ? "" : ", ") + print(probe);
  if (clause.predicate) text += fmt::format(" /{}/", print(*clause.predicate, types));
  if (clause.has_body) text += " " + Printer(types).block(clause.body);
  return text;
}

std::string variable(const VariableDeclaration& variable, const TypeTable& types) {
  constexpr std::array<std::string_view, 3> kScopes = {"", "self ", "this "};
  std::string keys;
  for (const TypeId key : variable.keys)
    keys += (keys.empty() ? "" : ", ") + types.name_of(key);
  return fmt::format("{}{} {}{}", kScopes[static_cast<size_t>(variable.scope)],
                     types.name_of(variable.type), variable.name,
                     variable.is_associative ? fmt::format("[{}]", keys) : "");
}

std::string inline_definition(const InlineDefinition& definition, const TypeTable& types) {
  std::string parameters;
  for (const TypeParameter& each : definition.parameters) {
    parameters +=
        fmt::format("{}{} {}", parameters.empty() ? "" : ", ", types.name_of(each.type), each.name);
  }
  return fmt::format("inline {} {}{} = {}", types.name_of(definition.type), definition.name,
                     parameters.empty() ? "" : fmt::format("[{}]", parameters),
                     print(definition.value, types));
}

std::string translator(const Translator& translator, const TypeTable& types) {
  std::string text = fmt::format("translator {} < {} {} > {{", types.name_of(translator.output),
                                 types.name_of(translator.input), translator.parameter);
  for (const Translator::Member& member : translator.members)
    text += fmt::format(" {} = {};", member.name, print(member.value, types));
  return text + " }";
}

std::string option(const PragmaOption& option) {
  return fmt::format("option {}{}", option.name, option.value ? "=" + *option.value : "");
}

}  // namespace

std::string escape(std::string_view text) {
  constexpr std::string_view kPlain = "abtnvfr";  // Of the bytes 7 to 13.
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += fmt::format("\\{}", c);
    } else if (byte >= 7 && byte <= 13) {
      result += fmt::format("\\{}", kPlain[byte - 7U]);
    } else if (byte < 32 || byte == 127) {
      result += fmt::format("\\{:03o}", byte);
    } else {
      result += c;
    }
  }
  return result;
}

std::string print(const Node& node, const TypeTable& types) {
  return Printer(types).expression(node);
}

std::string print(const Statement& statement, const TypeTable& types) {
  return Printer(types).statement(statement);
}

std::string print(const ProbeDescription& description) {
  if (description.id) return fmt::format("{}", *description.id);
  return fmt::format("{}:{}:{}:{}", description.provider, description.module, description.function,
                     description.name);
}

std::string print(const Program& program, const TypeTable& types) {
  std::string text;
  for (const auto& [item, index] : program.order) {
    switch (item) {
      case Program::Item::Clause:
        text += clause(program.clauses[index], types);
        break;
      case Program::Item::Variable:
        text += variable(program.variables[index], types);
        break;
      case Program::Item::Inline:
        text += inline_definition(program.inlines[index], types);
        break;
      case Program::Item::Translator:
        text += translator(program.translators[index], types);
        break;
      case Program::Item::Option:
        text += option(program.options[index]);
        break;
    }
    text += '\n';
  }
  return text;
}

}  // namespace clew::query::d
