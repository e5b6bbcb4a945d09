// SPDX-License-Identifier: Apache-2.0
// One traced process of a session: its catalog and sites before, its attachment, reader and root
// while it is traced.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "aggregate/accumulator.h"
#include "aggregate/table.h"
#include "answer/intake.h"
#include "base/error.h"
#include "collect/event_batch.h"
#include "collect/reader.h"
#include "collect/threads.h"
#include "engine/bodies.h"
#include "engine/fuel_guard.h"
#include "engine/names.h"
#include "engine/open_calls.h"
#include "engine/points.h"
#include "engine/probe_costs.h"
#include "engine/process_stacks.h"
#include "engine/sites.h"
#include "inline/attachment.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "target/catalog.h"

namespace clew::engine {

// Keys that the tracer keeps for one process, besides what the process's own memory holds.
inline constexpr size_t kKeysMax = size_t{1} << 20;

class Tracee {
 public:
  // What the processes of a session share: each file is read and decoded once.
  struct Shared {
    std::shared_ptr<target::SharedFiles> files = target::make_shared_files();
    std::shared_ptr<CodeCache> codes =
        std::make_shared<CodeCache>(target::default_catalog_options().read.cache_directory);
    std::shared_ptr<ProcessStacks> stacks = std::make_shared<ProcessStacks>(false);
    code::LateUprobeDanger danger = code::LateUprobeDanger::Refused;
    bool wants_copies = false;  // See copied_functions.h.
  };
  static Expected<std::unique_ptr<Tracee>> of_process(pid_t pid, const Shared& shared);
  Tracee(pid_t pid, target::Catalog catalog, const Shared& shared)
      : pid_(pid),
        catalog_(std::move(catalog)),
        codes_(shared.codes),
        stacks_(shared.stacks),
        late_uprobe_danger_(shared.danger),
        wants_copies_(shared.wants_copies) {}
  // Goes into the processes of its events.
  void set_number(uint32_t number) { number_ = number; }

  [[nodiscard]] pid_t pid() const { return pid_; }
  // How attach() waits for other sessions that change the process.
  void set_wait(inline_::LockWait wait) { wait_ = std::move(wait); }
  // That it ends is no loss.
  void set_may_end() { may_end_ = true; }
  // It was started for the session, and may end.
  void set_command() { is_command_ = may_end_ = true; }
  [[nodiscard]] bool is_command() const { return is_command_; }
  // Modules of which functions run on copies, or would if they could; where that is wanted.
  [[nodiscard]] const std::vector<CopiedReport>& copied() const { return copied_; }
  // The same of a process that is not changed.
  Expected<void> judge_copies(const plan::Lowered& lowered, const inline_::Geometry& geometry);
  // What a detach has left that harms nobody, one sentence; empty: nothing.
  [[nodiscard]] const std::string& kept() const { return kept_; }
  // What is gone after all, one sentence.
  void note_lost(std::string what) { lost_.push_back(std::move(what)); }
  target::Catalog& catalog() { return catalog_; }
  SiteSet& sites() { return sites_; }
  Expected<const code::ModuleCode*> code(size_t module) { return codes_->code(catalog_, module); }

  Expected<void> find_sites(const query::Query& query, bool allow_missing);
  // The groups of the sites from `first` on, of a tracee that comes when the state is laid out.
  void group_sites(const plan::Plan& plan, const plan::Lowered& lowered, plan::Grouping& grouping,
                   size_t first);
  // Which windows the sites take, as far as it can be known without touching the process. attach()
  // does it if nobody has.
  Expected<void> plan_windows(const plan::Plan& plan, const plan::Lowered& lowered);
  // All from here on borrow plan, lowered and grouping.
  Expected<void> attach(const plan::Plan& plan, const plan::Lowered& lowered,
                        const plan::Grouping& grouping, bool follow_forks);

  // --- one window of time for all processes of a session (tracee_window.cc) ---
  // Processes are armed one after the other. What was counted before the session begins is taken
  // away, and what is counted after its end is not looked at. For all tracees: begin_window(),
  // then, when there are generations, collect::barrier_everywhere() and settle_window(); at the end
  // end_window(), then detach().
  void begin_window();
  void settle_window();
  void end_window();

  [[nodiscard]] int pid_descriptor() const { return attachment_->pid_descriptor(); }
  [[nodiscard]] bool gone() const;
  // A loader in the process waits for us to look at new modules. Waits so long for it.
  [[nodiscard]] bool loader_waits(std::chrono::milliseconds timeout);
  // Arms the query's sites in modules that are new, and lets the loader go on.
  Expected<void> follow_modules(const plan::Plan& plan, plan::Grouping& grouping);
  // Whether later modules can matter.
  [[nodiscard]] bool follows_modules() const { return follows_modules_; }
  // Takes over what full halves of tables hold; true when there was one.
  bool drain_tables();
  // Whether another process with these mappings has this one's memory: it was forked by it.
  [[nodiscard]] bool is_in(std::span<const target::Mapping> maps) const {
    return attachment_->is_in(maps);
  }
  // The process is there, be it with another program.
  [[nodiscard]] bool has_process() const;
  // That it begins another program is no loss: that one is looked at.
  void set_follows_exec() { follows_exec_ = true; }
  // It is gone, and did not only begin another program.
  [[nodiscard]] bool has_ended() const;
  // It is gone, and so are the children that have begun with its memory: nothing counts any more.
  [[nodiscard]] bool is_over();
  std::vector<collect::DisarmedProbe> disarm_spinning();
  // Samples of this process are its: its own pid, or that of a child that has its memory.
  [[nodiscard]] bool is_sampled_as(pid_t pid) const;
  void take_sample(const kernel::CpuSample& sample) { probe_costs_.take(sample); }
  std::vector<collect::DisarmedProbe> keep_below(const OverheadBound& bound);
  void keep_house();  // Dead threads, names of threads.
  void read_events(collect::EventBatch& round);
  // Their rows, and below: session/source.h says more.
  void take_events(const collect::EventBatch& events, collect::EventRange range,
                   answer::RowBatch& rows) {
    intake_->take(events, range, rows);
  }
  // How many hits passed the filters so far (plans with `for N events`).
  uint64_t passed();
  void take_open_calls(uint64_t end_ticks, answer::RowBatch& rows);
  // The counts of the interval that ends now, or of the whole session.
  Expected<aggregate::Table> interval();
  Expected<aggregate::Table> total();
  void fire(uint16_t source, int64_t monotonic_ns, answer::RowBatch& rows) {
    intake_->fire(source, monotonic_ns, rows);
  }
  // After attach(): the names that are known by now.
  [[nodiscard]] session::RecordedProcess description() const;
  [[nodiscard]] std::string host() { return names_->host(); }
  // What its code at an address is called.
  [[nodiscard]] std::string symbol(uint64_t address) { return names_->symbol(address); }

  Expected<void> detach();
  collect::Losses losses();

 private:
  Expected<void> plan_all_windows(const WindowRequest& request);
  Expected<inline_::InstallReport> arm_sites(bool wants_copies);
  void note_armed(const ArmedSite& armed);
  [[nodiscard]] std::string why_no_copies_here(const plan::Lowered& lowered,
                                               bool follow_forks) const;
  [[nodiscard]] std::map<size_t, InstalledWindows> installed_in(
      std::span<const size_t> modules) const;
  [[nodiscard]] std::vector<uint64_t> semaphores() const;
  void note_gone(const std::set<size_t>& modules);
  void meet_children();
  void keep_stacks();
  void note_unwinders();
  [[nodiscard]] ProcessIds live_processes() const;
  [[nodiscard]] const Site* site_numbered(uint64_t function_number) const;
  void refuse_unnumbered(const plan::Lowered& lowered, size_t first);
  Expected<void> arm_new_modules(const plan::Plan& plan, plan::Grouping& grouping);
  [[nodiscard]] Expected<void> check_readable(const plan::Lowered& lowered) const;
  void check_late_duties(const plan::Plan& plan, size_t first);
  void note_jumps();
  Expected<void> make_reader(const plan::Lowered& lowered, bool follow_forks);
  [[nodiscard]] uint64_t passed_in(const aggregate::Accumulator& cells) const;
  Expected<aggregate::Table> with_counted(aggregate::Table table);
  void read_cells(aggregate::Accumulator& into);
  [[nodiscard]] bool counts_in_cells() const { return lowered_->form != plan::StateForm::Events; }

  pid_t pid_;
  uint32_t number_ = 0;
  target::Catalog catalog_;
  SiteSet sites_;
  std::shared_ptr<CodeCache> codes_;  // Of all tracees of the session.
  std::shared_ptr<ProcessStacks> stacks_;
  uint32_t unknown_code_ = 0;  // abi::TargetPage::unknown_code, as it was looked at last.
  code::LateUprobeDanger late_uprobe_danger_;
  bool wants_copies_;
  std::vector<CopiedReport> copied_;
  std::string kept_;
  bool is_planned_ = false;
  bool follows_modules_ = false;
  bool modules_changed_ = false;
  bool others_change_it_ = false;  // And that has to wait for them.
  bool went_on_loading_ = false;   // Once is said for all.
  uint64_t gone_modules_ = 0;      // Before they were armed,
  std::string first_gone_;         // and what one of them is called.
  const plan::Lowered* lowered_ = nullptr;
  // Pointers because they come with attach().
  std::unique_ptr<inline_::Attachment> attachment_;
  std::unique_ptr<collect::Reader> reader_;
  FuelGuard fuel_guard_;
  ProbeCosts probe_costs_;
  collect::ProcThreads threads_;
  uint32_t children_begun_ = 1;  // abi::TargetPage::processes; the first one's is free.
  std::set<uint32_t> unmet_;     // Of them: their pids are not there yet.
  ProcessIds children_;          // Followed, and known to be.
  std::unique_ptr<ProcessNames> names_;
  std::unique_ptr<answer::Intake> intake_;
  // What was taken over already: halves of tables that were full, and freed slots. In a session
  // with generations of this interval, else of the whole session.
  std::unique_ptr<aggregate::Accumulator> drained_;
  uint64_t passed_before_ = 0;                      // With generations: in earlier intervals.
  std::unique_ptr<aggregate::Accumulator> before_;  // Without: what the session does not count.
  collect::Losses lost_before_;
  std::optional<collect::Losses> lost_at_end_;
  std::optional<aggregate::Table> previous_;  // At the end of the last interval.
  collect::EventBatch freed_;                 // Events of freed slots.
  inline_::InstallReport report_;
  bool includes_open_ = false;
  collect::OpenCalls open_;
  collect::Causes open_missed_;
  bool detached_ = false;
  std::vector<std::string> lost_;
  std::set<std::string> left_by_jump_;
  bool is_command_ = false;
  bool may_end_ = false;
  std::chrono::steady_clock::time_point next_look_;  // For children, once it is gone.
  bool follows_exec_ = false;
  inline_::LockWait wait_;
};

}  // namespace clew::engine
