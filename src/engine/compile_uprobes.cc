// SPDX-License-Identifier: Apache-2.0
// What the compiler does for uprobes: sites that take no jump, and queries of processes that only
// programs of the kernel can serve.
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/compiler.h"
#include "engine/later_usdt.h"
#include "engine/usdt_sites.h"
#include "plan/uprobe_form.h"

namespace clew::engine {

// A file of events holds those of processes alone.
bool Compiler::may_have_uprobes() const {
  return places_.process && !is_kernels_ && !result_.in_place &&
         request_.uprobes != UprobePolicy::Never && request_.spill_path.empty();
}

// None when there may be no uprobes.
Expected<std::vector<UprobeSite>> Compiler::find_uprobes(const query::Query& query) {
  std::vector<UprobeSite> all;
  for (const auto& tracee : result_.tracees) {
    CLEW_TRY(tracee->plan_windows(result_.plan, result_.lowered));
    std::vector<UprobeSite> some = CLEW_TRY(find_uprobe_sites(*tracee, query, request_.uprobes));
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  if (!all.empty() && !may_set_uprobes()) all.clear();
  if (result_.joined) drop_shared_places(query, all);
  return all;
}

Expected<std::unique_ptr<KernelTracee>> Compiler::make_uprobes(const query::Query& query,
                                                               std::vector<KernelSite> sites) {
  KernelScope scope;
  for (const auto& tracee : result_.tracees)
    scope.pids.push_back(tracee->pid());
  KernelInput input = kernel_input();
  for (const KernelSite& site : sites)
    input.process_sources.insert(site.source);
  input.all_are_uprobes = is_kernels_;
  if (is_kernels_) {
    for (size_t i = 0; i < query.sources.size(); ++i) {
      if (plan::can_be_uprobe(query, query.sources[i]))
        input.process_sources.insert(static_cast<uint16_t>(i));
    }
    if (reads_usdt_arguments(query)) input.later = std::make_unique<LaterUsdt>(query);
  }
  // Beside jumps, --follow goes after these alone.
  scope.follows = request_.follow_forks && is_kernels_;
  if (scope.follows) {
    for (KernelSite& site : sites)
      set_everywhere(site);
    CLEW_TRY(check_one_each(sites));
  }
  input.family = CLEW_TRY(find_children(scope.follows));
  if (request_.follow_forks) input.child_cause = collect::kMissedUprobes;
  if (scope.pids.size() == 1 && !is_kernels_) {
    input.symbol = [tracee = result_.tracees[0].get()](uint64_t address) {
      return tracee->symbol(address);
    };
  }
  return KernelTracee::make(query, std::move(sites), scope, std::move(input));
}

// A session with uprobes begins when all are there. What the kernel's programs cannot do leaves the
// sites refused.
Expected<void> Compiler::compile_uprobes(const query::Query& query) {
  if (result_.tracees.size() > 1 && plan::names_code(query)) return {};
  const std::vector<UprobeSite> sites = CLEW_TRY(find_uprobes(query));
  if (sites.empty()) return {};
  std::vector<KernelSite> probes;
  probes.reserve(sites.size());
  for (const UprobeSite& site : sites)
    probes.push_back(site.probe);
  auto uprobes = make_uprobes(query, std::move(probes));
  if (!uprobes) {
    notices_.warning(fmt::format("no uprobes: {}", uprobes.error().message));
    return {};
  }
  result_.uprobes = std::move(*uprobes);
  for (const UprobeSite& site : sites)
    site.tracee->sites().sites[site.index].group.reset();
  CLEW_TRY(lower());
  for (const auto& tracee : result_.tracees)
    CLEW_TRY(tracee->plan_windows(result_.plan, result_.lowered));
  return {};
}

Expected<void> Compiler::check_uprobes() const {
  const std::string why = fmt::format("{}, at uprobes", kernels_reason_);
  if (request_.uprobes == UprobePolicy::Never) {
    return fail(ErrorCode::Refused, fmt::format("{}, and --no-uprobes forbids them", why));
  }
  if (!request_.spill_path.empty()) {
    return fail(ErrorCode::InvalidQuery,
                "--spill of what the kernel reads at uprobes is not part of this version yet");
  }
  if (may_set_uprobes()) return {};
  return fail(
      ErrorCode::Refused,
      fmt::format("{}, which {}", why, geteuid() == 0 ? "may not be set here" : "root may set"));
}

Expected<void> Compiler::check_usdt(const query::Query& query, const SiteSet& set) const {
  for (const Site& site : set.sites) {
    if (site.static_probe == nullptr) continue;
    const Expected<void> checked = check_usdt_uprobe(query, set, site);
    if (!checked) return at_source(query, site.source, checked.error().message);
  }
  return {};
}

// A query of processes that programs of the kernel alone can serve: nothing is written into them.
Expected<void> Compiler::compile_as_uprobes(const query::Query& query) {
  CLEW_TRY(check_uprobes());
  CLEW_TRY(find_sites(query));
  std::vector<KernelSite> sites;
  const std::string_view reason = reads_usdt_arguments(query) ? "usdt" : "stack";
  for (const auto& tracee : result_.tracees) {
    CLEW_TRY(check_usdt(query, tracee->sites()));
    for (UprobeSite& site : CLEW_TRY(find_as_uprobes(*tracee, query, reason, result_.refused)))
      sites.push_back(std::move(site.probe));
  }
  if (sites.empty() && !result_.refused.empty()) {
    return fail(ErrorCode::Refused,
                fmt::format("no site could be taken: '{}' can have no uprobe, and {}",
                            result_.refused[0].function, kernels_reason_));
  }
  if (result_.refused.empty() && !reads_usdt_arguments(query)) note_unmatched(query, false, sites);
  result_.uprobes = CLEW_TRY(make_uprobes(query, std::move(sites)));
  result_.all_uprobes = kernels_reason_;
  result_.plan = result_.uprobes->plan();
  result_.lowered = result_.uprobes->lowered().root;
  result_.tracees.clear();
  return {};
}

}  // namespace clew::engine
