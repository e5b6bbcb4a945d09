// SPDX-License-Identifier: Apache-2.0
// Whether functions can take probes, by their files and by what others have set in the process; and
// what a uprobe of somebody else does that comes later.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "code/later_uprobe.h"
#include "engine/sites.h"
#include "engine/text_changes.h"
#include "target/catalog.h"

namespace clew::engine {

// "yes", or why not, for entry and exits of a function.
struct Takeable {
  static constexpr const char* kYes = "yes";
  std::string entry = kYes;
  std::string exits = kYes;
  // Whether a query has a uprobe of the kernel there instead, as root: "" where it does not, "yes",
  // or "--uprobes" where it has to be asked for.
  std::string entry_uprobe;
  std::string exits_uprobe;
  std::string owner;  // Whose what stands there is, when that is a reason and is known.
  // What a probe at the entry may not ask for: "arg0", "xmm0", "stack" (arguments there, caller),
  // "memory". Its program would be refused with later-uprobe.
  std::vector<std::string> entry_without;
  // At the first byte, when both are taken as far as they can be.
  code::LaterUprobe later_uprobe = code::LaterUprobe::Safe;

  [[nodiscard]] bool is_taken() const { return entry == kYes || exits == kYes; }
};

// Of these functions, which are all of that module; in the same order. `patches` are those of
// others in the catalog's process.
Expected<std::vector<Takeable>> find_takeable(target::Catalog& catalog, CodeCache& codes,
                                              const std::vector<target::FunctionMatch>& matches,
                                              size_t module,
                                              std::span<const ForeignPatch> patches = {});

}  // namespace clew::engine
