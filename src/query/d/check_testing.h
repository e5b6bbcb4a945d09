// SPDX-License-Identifier: Apache-2.0
// For tests of the checker: programs over a small made-up kernel -> their typed trees, printed, or
// the errors of wrong ones.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "query/d/check.h"
#include "query/d/parse.h"
#include "query/d/print.h"

namespace clew::query::d {

// Kernel types and symbols by D text: what a kernel would give.
inline constexpr std::string_view kKernelTypes =
    "struct path { int mnt; };"
    "struct cred { int uid; };"
    "struct task_struct { int pid; int tgid; char comm[16]; unsigned long state;"
    " struct task_struct *parent; struct cred *cred; int low : 3; long slots[4]; };"
    "struct opaque;"
    "enum mood { GLAD, SAD = 7 };"
    "typedef struct shown { int a; char name[16]; int b; } shown_t;";

class FakeProvider final : public TypeProvider {
 public:
  TypeId find(TypeTable&, std::string_view, Tag, std::string_view) override { return kNoType; }
  std::optional<TypeEnumerator> find_enumerator(TypeTable&, std::string_view) override {
    return std::nullopt;
  }
  Expected<Symbol> find_symbol(TypeTable& table, std::string_view, std::string_view name) override {
    const TypeId type_int = table.find_base("int");
    if (name == "jiffies") return Symbol{0x1000, type_int};
    if (name == "table") return Symbol{0x2000, table.array_of(type_int, 16)};
    if (name == "schedule") return Symbol{0x3000, table.function(table.void_type(), {}, false)};
    if (name == "bare") return Symbol{0x4000, kNoType};
    return fail(ErrorCode::NotFound, "No such symbol");
  }
};

// Probes by the last field of a description.
class FakeProbes final : public ProbeSource {
 public:
  Expected<ProbeArguments> arguments(TypeTable& types, const ProbeDescription& probe) override {
    ProbeArguments found;
    found.matched = 1;
    if (probe.name == "none" || probe.provider == "pid77") found.matched = 0;
    if (probe.name == "bad") return fail(ErrorCode::Refused, "probe cannot be used here");
    const TypeId type_int = types.find_base("int");
    if (probe.name == "typed") found.types = {type_int, types.pointer_to(types.find_base("char"))};
    if (probe.name == "user") {
      found.types = {types.pointer_to(type_int)};
      found.is_userland = true;
    }
    if (probe.name == "untyped") found.types = {kNoType};
    found.disagree = probe.name == "mixed";
    if (probe.name == "task" || probe.name == "odd") {
      const TypeId native =
          types.find("", Tag::Struct, probe.name == "odd" ? "cred" : "task_struct");
      found.types = {type_int, types.pointer_to(types.find("", Tag::None, "shown_t"))};
      found.native_types = {type_int, types.pointer_to(native)};
      found.mapping = {3, 2};
    }
    return found;
  }
  std::optional<Problem> problem(const ProbeDescription& probe) override {
    if (probe.provider != "pid77") return std::nullopt;
    return Problem{"D_PROC_FUNC", "failed to lookup '" + probe.function + "'"};
  }
  std::string nearest(const ProbeDescription& probe) override {
    return probe.function == "naer" ? "::near:none" : "";
  }
};

inline CompileOptions script_options() {
  CompileOptions options;
  options.name = "test.d";
  return options;
}

inline Compiled<Script> compiled(std::string_view text,
                                 const CompileOptions& options = script_options()) {
  static FakeProvider provider;
  FakeProbes probes;
  TypeTable types;
  types.set_provider(&provider);
  const auto kernel = parse(kKernelTypes, options, types);
  EXPECT_TRUE(kernel.has_value()) << kernel.error().message;
  Program program = CLEW_TRY(parse(text, options, types));
  return check(std::move(program), std::move(types), probes, options);
}

inline std::string shown_error(const CompileError& error) {
  return fmt::format("{}: {}", error.tag, error.message);
}

// "ok", or tag and message.
inline std::string error_of(std::string_view text) {
  const auto script = compiled(text);
  return script ? "ok" : shown_error(script.error());
}

inline std::string tag_of(std::string_view text) {
  const auto script = compiled(text);
  return script ? "ok" : script.error().tag;
}

inline std::string in_clause(std::string_view body) {
  return fmt::format("BEGIN {{ {} }}", body);
}

// The last statement of the last clause, and the type of its expression.
inline std::string tree_of(std::string_view text) {
  const auto script = compiled(text);
  if (!script) return shown_error(script.error());
  const Statement& last = script->clauses.back().body.back();
  std::string printed = print(last.expression, script->types);
  const TypeId type = last.expression.type;
  return last.kind == StatementKind::Expression
             ? fmt::format("{} : {}", printed, script->types.name_of(type))
             : printed;
}

struct Case {
  std::string_view text;
  std::string_view expected;
};

inline void expect_trees(std::initializer_list<Case> cases) {
  for (const Case& each : cases)
    EXPECT_EQ(tree_of(in_clause(each.text)), each.expected) << each.text;
}

inline void expect_errors(std::initializer_list<Case> cases) {
  for (const Case& each : cases)
    EXPECT_EQ(error_of(in_clause(each.text)), each.expected) << each.text;
}

// Of whole programs.
inline void expect_tags(std::initializer_list<Case> cases) {
  for (const Case& each : cases)
    EXPECT_EQ(tag_of(each.text), each.expected) << each.text;
}

inline void expect_clause_tags(std::initializer_list<Case> cases) {
  for (const Case& each : cases)
    EXPECT_EQ(tag_of(in_clause(each.text)), each.expected) << each.text;
}

}  // namespace clew::query::d
