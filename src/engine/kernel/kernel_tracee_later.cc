// SPDX-License-Identifier: Apache-2.0
// Static probes of libraries that come while the session runs.
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/kernel/kernel_tracee.h"
#include "engine/sites.h"
#include "engine/uprobe_sites.h"

namespace clew::engine {

// What a filter by name removes is no site.
void KernelTracee::add_later() {
  if (later_ == nullptr || !session_) return;
  std::vector<kernel::MachineEnabling> added;
  for (KernelSite& site : later_->take()) {
    plan::Grouping grouping;
    plan::group_sites(plan_, {&site.names, 1}, UINT32_MAX, grouping);
    if (!grouping.group_of_site[0]) continue;
    if (scope_.follows) set_everywhere(site);
    kernel::MachineEnabling& enabling = added.emplace_back();
    enabling.probe = site.probe;
    enabling.probe.id = kFirstProbe + static_cast<uint32_t>(sites_.size());
    for (uint32_t clause = 0; clause < lowered_.programs.size(); ++clause) {
      const plan::KernelProgram& program = lowered_.programs[clause];
      if (!program.family && program.source == site.source) enabling.clauses.push_back(clause);
    }
    sites_.push_back(std::move(site));
  }
  waiting_.add(std::move(added));
  if (const auto set = waiting_.set(*session_); !set) later_problem_ = set.error().message;
  take_added();
}

// What has a place in the session now, by its places there.
void KernelTracee::take_added() {
  const auto enablings = session_->enablings();
  for (size_t i = enabled_sites_.size(); i < enablings.size(); ++i) {
    const size_t site = enablings[i].probe.id - kFirstProbe;
    enabled_sites_.push_back(site);
    enabled_names_.push_back(sites_[site].names);
  }
}

// What came since the last turn has no probes, but it is known what it was.
void KernelTracee::meet_last() {
  if (later_ == nullptr) return;
  for (const KernelSite& site : later_->take())
    met_last_.insert(site.source);
}

void KernelTracee::note_later(collect::Losses& losses) const {
  if (later_ == nullptr) return;
  for (const std::string& problem : {later_problem_, later_->problem()}) {
    if (problem.empty()) continue;
    losses.lost.push_back(
        fmt::format("probes of libraries that came later are missing: {}", problem));
  }
  std::set<uint16_t> matched = met_last_;
  for (const KernelSite& site : sites_)
    matched.insert(site.source);
  if (!refused_.empty() || !given_up_.empty()) return;
  for (std::string& told : unmatched_sources(query_, false, matched))
    losses.lost.push_back(std::move(told));
}

}  // namespace clew::engine
