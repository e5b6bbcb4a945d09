// SPDX-License-Identifier: Apache-2.0
#include "engine/later_usdt.h"

#include <optional>
#include <utility>

#include "engine/usdt_sites.h"

namespace clew::engine {

LaterUsdt::Place LaterUsdt::place_of(const KernelSite& site) {
  return {site.probe.pid, site.probe.path, site.probe.offset_bytes, site.source};
}

Expected<void> LaterUsdt::start(const std::vector<pid_t>& pids,
                                const std::vector<KernelSite>& known) {
  notices_.emplace(
      CLEW_TRY(kernel::ProcessNotices::open(kernel::ProcessNotices::Wanted::Mappings)));
  for (const KernelSite& site : known)
    known_.insert(place_of(site));
  for (const pid_t pid : pids) {
    auto catalog = target::Catalog::of_process(pid, target::default_catalog_options());
    if (!catalog) {
      if (catalog.error().code != ErrorCode::NotFound) problem_ = catalog.error().message;
      continue;  // It has ended.
    }
    processes_.emplace(pid, Process{std::move(*catalog), {}});
    changed_.insert(pid);
  }
  return {};
}

std::vector<int> LaterUsdt::descriptors() const {
  return notices_ ? notices_->descriptors() : std::vector<int>();
}

std::vector<KernelSite> LaterUsdt::take() {
  std::vector<KernelSite> found;
  if (!notices_) return found;
  bool is_lossy = false;
  for (const kernel::ProcessNotice& notice : notices_->read(is_lossy)) {
    if (notice.mapping.inode != 0) changed_.insert(notice.pid);
  }
  for (auto& [pid, process] : processes_) {
    if (is_lossy || changed_.contains(pid)) look_at(process, found);
  }
  changed_.clear();
  return found;
}

// A file that comes back has its uprobes still: they are the file's, for this process.
void LaterUsdt::look_at(Process& process, std::vector<KernelSite>& found) {
  const size_t first = process.sites.sites.size();
  std::vector<size_t> modules;
  if (first == 0 && process.sites.names.empty()) {
    for (size_t i = 0; i < process.catalog.modules().size(); ++i)
      modules.push_back(i);
  }
  if (auto added = process.catalog.refresh())
    modules.insert(modules.end(), added->begin(), added->end());
  if (modules.empty()) return;
  if (const auto all = find_sites(query_, process.catalog, true, modules, process.sites); !all)
    problem_ = all.error().message;
  for (size_t i = first; i < process.sites.sites.size(); ++i) {
    const Site& site = process.sites.sites[i];
    if (site.static_probe == nullptr) continue;
    if (const auto fits = check_usdt_uprobe(query_, process.sites, site); !fits) {
      problem_ = fits.error().message;
      continue;
    }
    KernelSite made = static_site(process.catalog, process.sites, site);
    made.refused = {.function = shown_name(process.sites, site),
                    .kind = kind_name(query::SourceKind::Usdt),
                    .reason = "usdt"};
    if (known_.insert(place_of(made)).second) found.push_back(std::move(made));
  }
}

}  // namespace clew::engine
