// SPDX-License-Identifier: Apache-2.0
#include "engine/takeable.h"

#include "inline/refusal.h"

namespace clew::engine {

namespace {

// Every window that would overwrite that byte.
void refuse_at(const inline_::Plan& plan, uint64_t address, const ForeignPatch& patch,
               std::vector<Takeable>& result) {
  for (const inline_::Point& point : plan.points) {
    const inline_::Window& window = plan.windows[point.window];
    if (address - window.address >= window.size_bytes) continue;
    Takeable& takeable = result[point.request / 2];
    (point.request % 2 == 0 ? takeable.entry : takeable.exits) =
        inline_::name(inline_::RefusalReason::ForeignPatch);
    takeable.owner = patch.owner;
  }
}

}  // namespace

Expected<std::vector<Takeable>> find_takeable(target::Catalog& catalog, CodeCache& codes,
                                              const std::vector<target::FunctionMatch>& matches,
                                              size_t module,
                                              std::span<const ForeignPatch> patches) {
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
  const uint64_t bias = catalog.modules()[module].file.load_bias;
  for (const ForeignPatch& patch : patches)
    refuse_at(plan, patch.address - bias, patch, result);
  for (size_t i = 0; i < result.size(); ++i)
    result[i].later_uprobe = inline_::later_uprobe(*code, plan, requests[2 * i].address);
  return result;
}

}  // namespace clew::engine
