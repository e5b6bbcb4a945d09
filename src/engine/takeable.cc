// SPDX-License-Identifier: Apache-2.0
#include "engine/takeable.h"

#include "inline/refusal.h"

namespace clew::engine {

Expected<std::vector<Takeable>> find_takeable(target::Catalog& catalog, CodeCache& codes,
                                              const std::vector<target::FunctionMatch>& matches,
                                              size_t module) {
  const target::ModuleImage* image = CLEW_TRY(catalog.image(module));
  const inline_::ModuleCode* code = CLEW_TRY(codes.code(catalog, module));
  std::vector<inline_::Request> requests;
  for (const target::FunctionMatch& match : matches) {
    const uint64_t address = image->functions()[match.function].address;
    requests.push_back({.kind = inline_::RequestKind::Entry, .address = address});
    requests.push_back({.kind = inline_::RequestKind::Exits, .address = address});
  }
  std::vector<Takeable> result(matches.size());
  const inline_::Plan plan = inline_::plan_windows(*code, requests);
  for (const inline_::Refusal& refusal : plan.refusals) {
    Takeable& takeable = result[refusal.request / 2];
    (refusal.request % 2 == 0 ? takeable.entry : takeable.exits) = inline_::name(refusal.reason);
  }
  for (size_t i = 0; i < result.size(); ++i)
    result[i].later_uprobe = inline_::later_uprobe(*code, plan, requests[2 * i].address);
  return result;
}

}  // namespace clew::engine
