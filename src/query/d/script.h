// SPDX-License-Identifier: Apache-2.0
// Script: a D program that was checked, as one value: what src/plan/d makes programs of and what
// src/output/d needs to print what they recorded. Nothing in it refers to the text.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "query/d/switch_word.h"
#include "query/d/syntax.h"
#include "query/d/types.h"

namespace clew::query::d {

// A scalar or associative array. Two with one name in different scopes are two variables.
struct Variable {
  VariableScope scope = VariableScope::Global;
  std::string name;
  TypeId type = kNoType;  // Of the scalar or the element.
  bool is_associative = false;
  std::vector<TypeId> keys;  // Associative: fixed by the first use.
};

struct Aggregation {
  std::string name;  // Without @.
  AggregateFunction function = AggregateFunction::Count;
  bool is_used = false;  // With an aggregating function; otherwise only named (printa(@never)).
  std::vector<TypeId> keys;
  // A stack() or sym() key has dynamic type; which one, with its frames, by position; None for
  // plain keys.
  struct Key {
    Action action = Action::None;
    uint32_t frames = 0;
  };
  std::vector<Key> key_actions;
  // lquantize: base, limit, step. llquantize: factor, low, high, steps.
  std::vector<int64_t> parameters;
};

// One conversion of a printf or printa format, or literal text before it.
struct FormatPart {
  std::string literal;          // Text in front of the conversion.
  bool has_conversion = false;  // False only in the last part.
  std::string flags;            // Of "#0-+' "
  std::optional<int32_t> width;
  std::optional<int32_t> precision;
  bool has_dynamic_width = false;      // `*`: takes an argument
  bool has_dynamic_precision = false;  // `.*`
  bool has_pointer_width = false;      // `?`
  bool is_aggregation = false;         // `@`
  std::string length;                  // "hh", "h", "l", "ll", "L", "z", …
  std::string conversion;              // "d", "s", "Y", "wc", …
};

struct Format {
  std::string text;
  std::vector<FormatPart> parts;
};

struct Options {
  std::map<std::string, std::string, std::less<>> values;  // As given: by name, "" = set.
  // Given, and not as off.
  [[nodiscard]] bool is_set(std::string_view name) const {
    const auto found = values.find(name);
    return found != values.end() && is_on(found->second);
  }
};

// A clause after the checker: its `probes` are the descriptions; which probes they match is the
// engine's to know.
struct Script {
  TypeTable types;
  std::vector<Clause> clauses;
  std::vector<Variable> variables;
  std::vector<Aggregation> aggregations;  // In order of first use.
  std::vector<Format> formats;
  std::vector<std::string> extension_functions;  // That are called, each once.
  Options options;
  bool is_destructive = false;
  uint32_t string_size_bytes = 256;
};

}  // namespace clew::query::d
