// SPDX-License-Identifier: Apache-2.0
// Whether functions can take probes, by their files alone, and what a uprobe of somebody else does
// that comes later.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "engine/sites.h"
#include "inline/later_uprobe.h"
#include "target/catalog.h"

namespace clew::engine {

// "yes", or why not, for entry and exits of a function.
struct Takeable {
  static constexpr const char* kYes = "yes";
  std::string entry = kYes;
  std::string exits = kYes;
  // At the first byte, when both are taken as far as they can be.
  inline_::LaterUprobe later_uprobe = inline_::LaterUprobe::Safe;

  [[nodiscard]] bool is_taken() const { return entry == kYes || exits == kYes; }
};

// Of these functions, which are all of that module; in the same order.
Expected<std::vector<Takeable>> find_takeable(target::Catalog& catalog, CodeCache& codes,
                                              const std::vector<target::FunctionMatch>& matches,
                                              size_t module);

}  // namespace clew::engine
