// SPDX-License-Identifier: Apache-2.0
// How an edge of a request is known: that a thread begins one, or goes on where another was.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace clew::causal {

// From the best to the least (docs/decisions/joins.md).
enum class EdgeClass : uint8_t {
  Explicit,   // The program says so itself.
  Sound,      // It cannot be otherwise.
  Recipe,     // A profile of the program says so, and was measured.
  Heuristic,  // The same rules without such a profile.
};
inline constexpr size_t kEdgeClasses = 4;

// What is believed where a query does not say otherwise, and all that is better.
inline constexpr EdgeClass kLeastBelieved = EdgeClass::Recipe;

// As queries, vocabularies and answers write them.
inline constexpr std::array<std::string_view, kEdgeClasses> kEdgeClassNames = {
    "explicit", "sound", "recipe", "heuristic"};

constexpr std::string_view name_of(EdgeClass how) {
  return kEdgeClassNames[static_cast<size_t>(how)];
}

}  // namespace clew::causal
