// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/left_out.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "engine/dtrace/probes.h"
#include "query/d/print.h"

namespace clew::engine {
namespace {

constexpr size_t kNamedMax = 5;

std::string name_of(const kernel::Catalogue& catalogue, uint32_t id) {
  const kernel::Probe* const probe = catalogue.find(id);
  if (probe == nullptr) return fmt::format("{}", id);
  return fmt::format("{}:{}:{}:{}", probe->provider, probe->module, probe->function, probe->name);
}

}  // namespace

Expected<std::string> left_out_text(const CompiledScript& compiled, kernel::Catalogue& catalogue,
                                    std::span<const uint32_t> left_out) {
  if (left_out.empty()) return std::string();
  const std::set<uint32_t> ids(left_out.begin(), left_out.end());
  CatalogueProbes probes(catalogue);
  for (const query::d::Clause& clause : compiled.script.clauses) {
    for (const query::d::ProbeDescription& description : clause.probes) {
      const std::vector<uint32_t> matched = CLEW_TRY(probes.match(description));
      const bool is_hopeless =
          !matched.empty() && std::all_of(matched.begin(), matched.end(),
                                          [&](uint32_t id) { return ids.count(id) != 0; });
      if (!is_hopeless) continue;
      return fail(ErrorCode::Refused,
                  fmt::format("the kernel cannot set a probe at the instruction of {}",
                              query::d::print(description)));
    }
  }
  std::string names;
  for (const uint32_t id : left_out.first(std::min(left_out.size(), kNamedMax))) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(catalogue, id));
  }
  if (left_out.size() > kNamedMax) {
    names += fmt::format(" and {} more", left_out.size() - kNamedMax);
  }
  return fmt::format(
      "dtrace: warning: {} {} left out, whose instruction the kernel cannot probe: "
      "{}\n",
      left_out.size(), left_out.size() == 1 ? "probe" : "probes", names);
}

}  // namespace clew::engine
