// SPDX-License-Identifier: Apache-2.0
// Prototypes of subroutines, actions and built-in variables, as text that is parsed once, and the
// check of arguments against one of them (D_PROTO_LEN, D_PROTO_ARG).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "query/d/check_context.h"

namespace clew::query::d::checking {

struct Prototype {
  struct Parameter {
    std::string text;  // As the table has it, for messages; "@" takes any type.
    TypeId type = kNoType;
  };
  TypeId result = kNoType;
  std::vector<Parameter> parameters;
  uint32_t required = 0;  // Those behind it may be left out.
  bool is_variadic = false;
};

// "string(const char *, int, [int])": optional parameters in brackets, "..." at the end.
Prototype parse_prototype(TypeTable& types, std::string_view text);
[[nodiscard]] std::string_view prototype_of(Subroutine subroutine);
[[nodiscard]] std::string_view prototype_of(Action action);
[[nodiscard]] std::string_view prototype_of(AggregateFunction kind);

// How something is called in messages: "strlen( )", "x[ ]".
struct Called {
  std::string name;
  bool is_array = false;  // keys in brackets, not arguments in parentheses
};

// The arguments are checked expressions.
Compiled<void> check_arguments(Context& context, const Node& place, const Called& called,
                               const Prototype& prototype, std::span<Node> arguments);

}  // namespace clew::query::d::checking
