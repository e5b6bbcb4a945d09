// SPDX-License-Identifier: Apache-2.0
// Static probes (USDT) of files that the processes of a session map while it runs, for queries that
// read their arguments: their uprobes are set some milliseconds after the file is mapped.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "engine/kernel/kernel_sources.h"
#include "engine/sites.h"
#include "kernel/process_notices.h"
#include "query/query.h"
#include "target/catalog.h"

namespace clew::engine {

class LaterUsdt {
 public:
  explicit LaterUsdt(query::Query query) : query_(std::move(query)) {}

  // Of these processes. `known`: the sites that were found before. From here on nothing is missed;
  // what came meanwhile is among the first that take() gives. Errors: the kernel does not tell.
  Expected<void> start(const std::vector<pid_t>& pids, const std::vector<KernelSite>& known);
  // Readable when take() is wanted.
  [[nodiscard]] std::vector<int> descriptors() const;
  // What was mapped since the last call; the probes have no ids.
  std::vector<KernelSite> take();
  // Why something that came is not among them; empty when all is.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  struct Process {
    target::Catalog catalog;
    SiteSet sites;
  };
  using Place = std::tuple<int64_t, std::string, uint64_t, uint16_t>;  // Pid, file, offset, source.

  void look_at(Process& process, std::vector<KernelSite>& found);
  static Place place_of(const KernelSite& site);

  query::Query query_;
  std::map<pid_t, Process> processes_;
  std::set<Place> known_;
  std::set<pid_t> changed_;
  std::string problem_;
  std::optional<kernel::ProcessNotices> notices_;
};

}  // namespace clew::engine
