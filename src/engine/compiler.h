// SPDX-License-Identifier: Apache-2.0
// How a query becomes what runs (compile.h): its processes and their sites, its plan, and the
// programs of the process (compile.cc), of the kernel (compile.cc) and at uprobes
// (compile_uprobes.cc). Internal to those two.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/clock.h"
#include "engine/compile.h"
#include "engine/extensions.h"
#include "engine/kernel/kernel_tracee.h"
#include "engine/sites.h"
#include "engine/tracee.h"
#include "engine/uprobe_sites.h"
#include "kernel/providers/catalogue.h"
#include "kernel/trace_events.h"
#include "plan/in_place.h"
#include "query/parse.h"
#include "query/query.h"
#include "query/vocabulary.h"

namespace clew::engine {

class Compiler {
 public:
  Compiler(const Request& request, Notices& notices, std::optional<int> stop_descriptor)
      : request_(request),
        notices_(notices),
        stop_descriptor_(stop_descriptor),
        clock_start_(sample_clock()) {
    result_.started = std::chrono::steady_clock::now();
    shared_.stacks = std::make_shared<ProcessStacks>(!request.spill_path.empty());
  }

  Expected<void> find_processes();
  Expected<void> compile();
  // For the first process that has a module.
  [[nodiscard]] bool has_waited() const { return has_waited_; }
  [[nodiscard]] std::vector<pid_t> looked_at() const {
    return {looked_at_.begin(), looked_at_.end()};
  }
  Compiled take() {
    result_.shared = std::move(shared_);
    return std::move(result_);
  }

 private:
  Expected<std::vector<pid_t>> wanted_pids();
  Expected<std::vector<pid_t>> find_or_wait(const Chosen& chosen);
  Expected<void> find_later();
  Expected<query::Query> parse();
  Expected<void> compile_processes(query::Query query);
  Expected<void> compile_kernel(const query::Query& query);
  Expected<void> lower();
  [[nodiscard]] KernelInput kernel_input() const;
  Expected<KernelFamilySites> find_children(bool follows);
  [[nodiscard]] bool may_have_uprobes() const;
  Expected<std::vector<UprobeSite>> find_uprobes(const query::Query& query);
  Expected<std::unique_ptr<KernelTracee>> make_uprobes(const query::Query& query,
                                                       std::vector<KernelSite> sites);
  [[nodiscard]] Expected<void> check_usdt(const query::Query& query, const SiteSet& set) const;
  Expected<void> compile_uprobes(const query::Query& query);
  [[nodiscard]] Expected<void> check_uprobes() const;
  Expected<void> compile_as_uprobes(const query::Query& query);
  std::vector<query::Carrier> carriers_of_sockets(causal::EdgeClass least);
  Expected<query::Query> separate(const query::Query& query);
  Expected<void> find_sites(const query::Query& query);
  Expected<void> check_streams(const query::Query& query);
  [[nodiscard]] std::string way_to_wait(Tracee& tracee, const query::Source& source,
                                        const Error& error) const;
  // Of processes, or of the kernel: what is missing there now comes no more.
  template <typename Sites>
  void note_unmatched(const query::Query& query, bool in_kernel, const Sites& sites) {
    std::set<uint16_t> matched;
    for (const auto& site : sites)
      matched.insert(site.source);
    for (std::string& told : unmatched_sources(query, in_kernel, matched))
      result_.lost.push_back(std::move(told));
  }
  void note_left_out(pid_t pid, const Error& error);
  void leave_out(pid_t pid, const std::string& reason);
  void tell_left_out();
  [[nodiscard]] tl::unexpected<Error> at_source(const query::Query& query, uint16_t source,
                                                const std::string& message) const;
  [[nodiscard]] uint16_t largest_source() const;
  [[nodiscard]] Expected<void> check_function_ids() const;
  // Groups for functions of modules that are loaded later.
  [[nodiscard]] uint32_t spare_groups() const;

  const Request& request_;
  Notices& notices_;
  std::optional<int> stop_descriptor_;
  ClockSample clock_start_;
  // One for all: panes are cut by it.
  const int64_t epoch_ns_ =
      request_.panes != nullptr ? request_.pane_clock.offset_ns : epoch_of_monotonic_ns();
  std::optional<Clock> clock_;  // Of what was lowered.
  query::Vocabulary vocabulary_;
  query::SourcePlaces places_;
  bool asks_kernel_ = false;  // Not only for that:
  bool watches_threads_ = false;
  bool is_kernels_ = false;  // Its sources of processes are all uprobes, for this reason.
  std::string_view kernels_reason_;
  KernelScope scope_;
  Tracee::Shared shared_;
  std::optional<Extensions> extensions_;
  kernel::Catalogue catalogue_;  // Of the kernel's probes.
  kernel::TraceEvents events_;
  plan::Contexts contexts_;  // Of joins in place.
  Compiled result_;
  std::set<pid_t> looked_at_;
  bool has_waited_ = false;
  size_t ended_ = 0;          // Of them, before they could be.
  size_t left_out_told_ = 0;  // Of result_.left_out.
};

}  // namespace clew::engine
