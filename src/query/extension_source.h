// SPDX-License-Identifier: Apache-2.0
// ExtensionSource: what the checker asks about functions that are not the language's own: those of
// the user's extensions and those that come with Clew. The engine answers from objects; tests
// answer from a table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "query/query.h"

namespace clew::query {

// All its types are integers; an address has Unit::Address.
struct ExtensionFunction {
  std::string name;
  Type result;
  std::vector<Type> parameters;
  std::string refusal;  // Why it cannot be called ("it gives no integer"); empty when it can.
};

class ExtensionSource {
 public:
  virtual ~ExtensionSource() = default;

  // Null when there is none. Valid as long as the source.
  virtual const ExtensionFunction* find(std::string_view name) = 0;
  virtual std::vector<std::string> names() = 0;
};

// Whether the language itself has a function of that name, which then is what a query calls.
bool is_language_function(std::string_view name);

// What Fay's queries call sample(event, State) and MovingAverage(x, State).
inline constexpr std::string_view kSketchFunction = "sketch_sample";
inline constexpr std::string_view kAverageFunction = "moving_average";

}  // namespace clew::query
