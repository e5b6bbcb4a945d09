// SPDX-License-Identifier: Apache-2.0
// Numbers that programs and the kernel share by name, as Linux's headers define them: errno, flags
// of open(), signals. A query casts to a set, `(open_flags)e.flags`, and shows and compares names.
#pragma once

#include <span>
#include <string_view>

#include "query/query.h"

namespace clew::query {

struct NumberSet {
  std::string_view name;  // As a cast has it.
  std::string_view doc;
  Type type;  // Of a number of it, without the enumeration.
  Enumeration enumeration;
};

// errno is the first.
std::span<const NumberSet> number_sets();
const NumberSet* find_number_set(std::string_view name);  // Null: there is none.

}  // namespace clew::query
