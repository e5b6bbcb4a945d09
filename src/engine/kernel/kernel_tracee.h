// SPDX-License-Identifier: Apache-2.0
// The kernel as what a session traces: the query's sources in it as programs of one D session, and
// what they have counted and emitted as tables and events of the query. So are probes in processes
// that are uprobes (uprobe_sites.h): a tracee of their own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "aggregate/accumulator.h"
#include "answer/intake.h"
#include "base/error.h"
#include "base/file_descriptor.h"
#include "engine/clock.h"
#include "engine/kernel/kernel_family.h"
#include "engine/kernel/kernel_sources.h"
#include "engine/later_usdt.h"
#include "engine/waiting_uprobes.h"
#include "extension/extension.h"
#include "inline/process_lock.h"
#include "kernel/machine_session.h"
#include "plan/kernel_lower.h"
#include "plan/plan.h"
#include "plan/sites.h"
#include "session/source.h"

namespace clew::engine {

// Which processes' events count.
struct KernelScope {
  std::vector<pid_t> pids;  // Empty: all but Clew itself.
  bool follows = false;     // Those that they make count, too, with theirs.
};

// What else of the session it is made from.
struct KernelInput {
  // Of the events of processes in the same session, to whose ticks times are converted.
  std::optional<plan::Clock> clock;
  std::span<const extension::Extension> extensions;
  uint64_t fuel = extension::kFuel;
  std::optional<KernelFamilySites> family{};             // With pids.
  std::string_view child_cause = collect::kMissedForks;  // Of children that are not followed.
  // Sources that are uprobes of processes; those of the kernel are not meant then.
  std::set<uint16_t> process_sources{};
  bool all_are_uprobes = false;  // And the query could have nothing else.
  // What of them may come while the session runs; or null.
  std::unique_ptr<LaterUsdt> later{};
  // How code of the processes is called at an address, when the sites are theirs.
  std::function<std::string(uint64_t)> symbol{};
  int64_t epoch_ns = 0;  // CLOCK_REALTIME - CLOCK_MONOTONIC.
};

class KernelNames;

class KernelTracee final : public session::Source {
 public:
  // Plans and lowers; the kernel is not touched.
  static Expected<std::unique_ptr<KernelTracee>> make(const query::Query& query,
                                                      std::vector<KernelSite> sites,
                                                      const KernelScope& scope, KernelInput input);
  KernelTracee();  // For make().
  ~KernelTracee() override;

  // Loads the programs and attaches them. Nothing fires before start().
  Expected<void> attach();
  // The same of sites in processes, but those that are not `wanted`. The places are looked at while
  // the processes are locked, and those that are somebody else's refused.
  Expected<void> attach_in_processes(const std::set<pid_t>& wanted, inline_::LockWait wait);
  // All its sites, where that has failed.
  [[nodiscard]] std::vector<collect::RefusedSite> refused_sites() const;
  // Goes into the processes of its events.
  void set_number(uint32_t number) { number_ = number; }

  [[nodiscard]] const plan::Plan& plan() const { return plan_; }
  [[nodiscard]] const plan::KernelLowered& lowered() const { return lowered_; }
  [[nodiscard]] const std::vector<KernelSite>& sites() const { return sites_; }
  // Those of them that fire: all, or, once attached, those that the kernel lets be probed.
  [[nodiscard]] size_t armed() const { return sites_.size() - refused_.size(); }
  [[nodiscard]] const KernelScope& scope() const { return scope_; }

  [[nodiscard]] bool gone() const override;
  Expected<void> start(uint64_t begin_ticks) override;
  // Nothing fires any more; detach() takes the programs out.
  void stop(uint64_t end_ticks) override;
  void add_descriptors(std::vector<pollfd>& descriptors) override;
  std::chrono::nanoseconds patience() override;
  Expected<void> turn() override;
  [[nodiscard]] bool has_events() const override {
    return lowered_.root.form == plan::StateForm::Events;
  }
  [[nodiscard]] uint64_t now() const override;
  Expected<void> read_events(collect::EventBatch& round) override;
  void take_events(const collect::EventBatch& events, collect::EventRange range,
                   answer::RowBatch& rows) override;
  uint64_t passed() override { return intake_->passed(); }
  Expected<aggregate::Table> interval() override;
  Expected<aggregate::Table> total() override;
  void fire(uint16_t source, int64_t monotonic_ns, answer::RowBatch& rows) override;
  void take_open_calls(uint64_t end_ticks, answer::RowBatch& rows) override;
  Expected<void> detach() override;
  collect::Losses losses() override;

 private:
  // Of the family's probes, then of the others, by their places in sites_.
  static constexpr uint32_t kFamilyProbe = kernel::kErrorProbe + 1;
  static constexpr uint32_t kFirstProbe = kFamilyProbe + 2;

  Expected<void> load();
  Expected<void> watch_processes();
  Expected<void> refuse_barred();
  bool give_up_left_out();
  void add_later();
  void take_added();
  void meet_last();
  void note_later(collect::Losses& losses) const;
  [[nodiscard]] collect::RefusedSite refusal_of(const KernelSite& site, std::string_view why) const;
  // Because of what the query asks for: a site's `refused` says that, and nothing of the site.
  [[nodiscard]] bool all_are_uprobes() const { return all_are_uprobes_; }
  void group_sites();
  [[nodiscard]] kernel::MachinePrograms programs() const;
  [[nodiscard]] kernel::MachineExtensions extensions() const;
  [[nodiscard]] std::vector<kernel::MachineEnabling> enablings();
  void enable(kernel::Probe probe, uint32_t clause, size_t site,
              std::vector<kernel::MachineEnabling>& enablings);
  void enable_family(uint32_t clause, std::vector<kernel::MachineEnabling>& enablings);
  [[nodiscard]] bool has_recorder(uint16_t source) const;
  void take_record(std::span<const uint8_t> record, collect::EventBatch& round);
  void take_open_call(uint16_t source, const kernel::ThreadValue& value, answer::RowBatch& rows);
  void note_end();
  [[nodiscard]] uint64_t event_time(uint64_t time_ns) const;
  Expected<aggregate::Table> counted(bool takes);
  void add_cells(size_t aggregate, const std::vector<kernel::MachineAggregate>& counted,
                 aggregate::Accumulator& cells) const;

  query::Query query_;  // As it is written; plan_ has it in the kernel's form.
  plan::Plan plan_;
  plan::KernelLowered lowered_;
  uint64_t fuel_ = extension::kFuel;
  plan::Grouping grouping_;
  std::vector<KernelSite> sites_;
  std::optional<KernelFamilySites> family_;
  std::string_view child_cause_;
  // Enablings as they are asked for: of those that are one place of a file each has its process.
  std::vector<kernel::MachineEnabling> wanted_;
  std::vector<plan::SiteNames> enabled_names_;  // By enabling, which words of names are.
  std::vector<size_t> enabled_sites_;           // By enabling: its place in sites_, or behind them.
  std::set<size_t> refused_;                    // The same, of functions that nobody may probe.
  std::vector<collect::RefusedSite> given_up_;  // No sites any more.
  std::vector<uint16_t> program_sources_;       // By clause.
  KernelScope scope_;
  uint32_t number_ = 0;
  std::optional<Counter> counter_;    // If times are its: events of processes are asked for, too.
  std::optional<ClockSample> ended_;  // When nothing fired any more.
  collect::OpenCalls open_;
  collect::Causes open_missed_;
  std::vector<FileDescriptor> descriptors_;
  std::vector<collect::LeftOut> left_out_;
  std::unique_ptr<KernelNames> names_;
  std::unique_ptr<answer::Intake> intake_;
  std::optional<kernel::MachineSession> session_;
  std::unique_ptr<LaterUsdt> later_;
  WaitingUprobes waiting_;
  std::string later_problem_;    // Why some that came later are missing.
  std::set<uint16_t> met_last_;  // Sources of probes that came too late to be set.
  std::vector<uint64_t> words_;
  bool all_are_uprobes_ = false;
  bool detached_ = false;
};

}  // namespace clew::engine
