// SPDX-License-Identifier: Apache-2.0
// Membership of an enumerator in a short list, where a switch would name all the others, too.
#pragma once

namespace clew::plan::d {

template <typename Value, typename... Values>
constexpr bool is_one_of(Value value, Values... values) {
  return ((value == values) || ...);
}

}  // namespace clew::plan::d
