// SPDX-License-Identifier: Apache-2.0
// What the checker knows while it walks a program: the script that it makes, the names in scope,
// and the clause or definition at hand. Private to check*.cc.
//
// The checker rewrites the tree in place. Every check_…() types the node that it gets and
// everything below, and leaves no name unresolved.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "query/d/check.h"
#include "query/d/script.h"
#include "query/d/syntax.h"

namespace clew::query::d::checking {

using Failure = tl::unexpected<CompileError>;

// An inline whose value is checked: uses are copies of the value.
struct KnownInline {
  TypeId type = kNoType;
  std::vector<TypeParameter> parameters;
  Node value;                  // Refers to its parameters by Storage::Parameter.
  bool is_of_library = false;  // The program may define it anew.
  Stability stability;
};

// A translator. Members of the library's are checked when they are first used (`is_checked`), so
// that a kernel without some field only misses what needs that field.
struct KnownTranslator {
  TypeId output = kNoType;
  TypeId input = kNoType;
  std::string parameter;
  struct Member {
    std::string name;
    Node value;
    uint32_t line = 0;
    bool is_checked = false;
    Stability stability;
  };
  std::vector<Member> members;
};

using VariableKey = std::pair<VariableScope, std::string>;

// What a clause did so far, for the rules about speculations. Branches start with what stands
// before them, and after them holds what any of them did.
struct Effects {
  bool speculates = false;
  bool commits = false;
  bool records = false;
};

// The types that first assignments gave to undeclared variables, from a walk before this one.
struct KnownVariable {
  TypeId type = kNoType;
  bool is_associative = false;
  bool operator==(const KnownVariable&) const = default;
};
using KnownVariables = std::map<VariableKey, KnownVariable>;

// Where a pointer leads: into scratch memory, or elsewhere.
enum class PointerSource : uint8_t { Unknown, Alloca, Other };

struct LoadPlace {
  uint32_t line = 0;
  Span span;
};

struct Context {
  Context(Script& made, ProbeSource& probe_source, const CompileOptions& compile_options)
      : script(made), probes(probe_source), options(compile_options) {}

  Script& script;
  ProbeSource& probes;
  const CompileOptions& options;

  std::map<VariableKey, uint32_t> variables;
  std::map<std::string, uint32_t, std::less<>> aggregations;
  std::vector<uint32_t> aggregation_lines;  // Of their first uses.
  std::map<std::string, KnownInline, std::less<>> inlines;
  std::vector<KnownTranslator> translators;

  // Variables that exist by a load alone (type int until a store says otherwise), and what the
  // stores said in the walk before.
  std::map<uint32_t, bool> is_only_loaded;
  std::map<uint32_t, LoadPlace> first_loads;          // Of scalars of threads and clauses.
  std::map<uint32_t, PointerSource> pointer_sources;  // By variable.
  bool loads_precede_stores = false;
  KnownVariables known_types;
  bool is_searching = false;  // This walk is for those types only.

  // Of the clause at hand; null in definitions.
  const Clause* clause = nullptr;
  std::vector<ProbeArguments> arguments;  // By description.
  std::map<const Clause*, std::vector<ProbeArguments>> arguments_of_clauses;
  std::vector<TypeParameter> parameters;  // Of the inline or translator at hand.
  Stability stability;                    // Of what the clause or definition at hand names.
  std::map<std::string, Stability, std::less<>> attributes;  // By #pragma D attributes.
  uint32_t expansion_depth = 0;                              // Translators within translators.
  uint64_t expanded_nodes = 0;  // That inlines and translators made so far.
  Effects effects;

  [[nodiscard]] TypeTable& types() { return script.types; }
};

inline Failure error_at(const Node& node, std::string tag, std::string message) {
  return compile_error(std::move(tag), std::move(message), node.line, node.span);
}

// `node` is `what` ("scalar curthread"), which is as stable as that: the clause is not more stable.
// D_ATTR_MIN when the option amin wants more.
Compiled<void> note_stability(Context& context, const Node& node, const Stability& stability,
                              std::string_view what);

inline Failure with_nearest(Failure failure, std::string nearest) {
  failure.value().nearest = std::move(nearest);
  return failure;
}

}  // namespace clew::query::d::checking
