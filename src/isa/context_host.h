// SPDX-License-Identifier: Apache-2.0
// The accessors of contexts (abi/region.h, ContextLayout) for tests: one thread that never dies,
// and objects that are never forgotten for others.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "abi/region.h"
#include "base/error.h"

namespace clew::isa {

class Window;
using Arguments = std::array<uint64_t, 5>;  // r1 to r5.

class ContextHost {
 public:
  // Errors: Refused, when the layout is outside the window, or there is no such act.
  Expected<uint64_t> open(const abi::ContextLayout& layout, Window& window) const;
  Expected<uint64_t> act(const abi::ContextLayout& layout, const Arguments& arguments,
                         Window& window);

 private:
  std::map<uint64_t, std::vector<uint64_t>> objects_;  // Words of the contexts that are put.
  uint64_t last_request_ = 0;
};

}  // namespace clew::isa
