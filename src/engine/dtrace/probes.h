// SPDX-License-Identifier: Apache-2.0
// What probe descriptions match, for the checker and for the enabling: the kernel's catalogue seen
// with the names of D.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "kernel/providers/catalogue.h"
#include "query/d/check.h"

namespace clew::engine {

// A type by its name, perhaps after struct, union or enum, and with stars behind it. kNoType when
// it is not known.
query::d::TypeId type_by_text(query::d::TypeTable& table, std::string_view text);

// Of a probe and its arguments: what the file of its provider says, else what is known of the name.
query::d::ProviderStability stability_of(const kernel::Catalogue& catalogue,
                                         const kernel::Probe& probe);

class CatalogueProbes final : public query::d::ProbeSource {
 public:
  explicit CatalogueProbes(kernel::Catalogue& catalogue) : catalogue_(catalogue) {}

  Expected<query::d::ProbeArguments> arguments(
      query::d::TypeTable& table, const query::d::ProbeDescription& description) override;
  std::string nearest(const query::d::ProbeDescription& description) override;
  std::optional<Problem> problem(const query::d::ProbeDescription& description) override;
  // Ids of all probes that match.
  Expected<std::vector<uint32_t>> match(const query::d::ProbeDescription& description);

 private:
  std::optional<Problem> problem_of_pid(const query::d::ProbeDescription& description);
  std::optional<Problem> problem_of_offset(query::d::ProbeDescription description, uint64_t offset);
  // How many probes there are when these fields of the description are not looked at.
  uint64_t matched_without(query::d::ProbeDescription description,
                           std::initializer_list<std::string query::d::ProbeDescription::*> fields);

  kernel::Catalogue& catalogue_;
};

}  // namespace clew::engine
