// SPDX-License-Identifier: Apache-2.0
// What a plan decides per site before any probe runs: which sites fail a filter that only looks at
// names, and which dense group each belongs to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aggregate/table.h"
#include "plan/plan.h"

namespace clew::plan {

struct SiteNames {
  uint16_t source = 0;  // Index in query.sources.
  std::string function;
  std::string module;
  std::string probe;
};

struct Grouping {
  std::vector<std::optional<uint32_t>> group_of_site;  // None: a filter removes the site.
  // By group: query.values as far as they are constant per site; the others are null.
  std::vector<aggregate::Key> keys;
};

// Appends the groups of more sites. Sites that would need a group beyond `groups_max` get none.
void group_sites(const Plan& plan, std::span<const SiteNames> sites, uint32_t groups_max,
                 Grouping& grouping);

}  // namespace clew::plan
