// SPDX-License-Identifier: Apache-2.0
#include "engine/tracee.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include "base/assert.h"
#include "base/log.h"
#include "engine/copied_functions.h"
#include "engine/left_text.h"
#include "engine/session_memory.h"
#include "isa/opcode.h"
#include "plan/uprobe_form.h"
#include "target/end_status.h"
#include "target/process.h"

namespace clew::engine {
namespace {

bool calls(const plan::Lowered& lowered, abi::Accessor accessor) {
  const auto is_call = [accessor](const isa::Instruction& i) {
    return i.opcode == isa::kCallOpcode && i.immediate == static_cast<int32_t>(accessor);
  };
  return std::any_of(lowered.programs.begin(), lowered.programs.end(), [&](const auto& probe) {
    return std::any_of(probe.program.code.begin(), probe.program.code.end(), is_call);
  });
}

// True when a source could match in a module that is loaded later: it does not name the main
// program alone.
bool names_other_modules(const query::Query& query, target::Catalog& catalog, const SiteSet& set) {
  const auto is_main = [&](const Site& site) {
    return catalog.modules()[site.module].file.is_executable;
  };
  const bool all_name_one =
      std::all_of(query.sources.begin(), query.sources.end(), [](const query::Source& source) {
        return !source.module.empty() && source.module.find_first_of("*?[") == std::string::npos;
      });
  return !all_name_one || !std::all_of(set.sites.begin(), set.sites.end(), is_main);
}

// How a process ended that has no memory any more: "was killed by SIGSEGV". Of its own will, or in
// a way that nobody tells us: "ended".
std::string end_of(int pid_descriptor, pid_t pid) {
  constexpr int kDyingMaxMs = 1000;  // A large process dies slowly.
  pollfd dead = {.fd = pid_descriptor, .events = POLLIN, .revents = 0};
  (void)poll(&dead, 1, kDyingMaxMs);
  const std::optional<int> status = target::end_status(pid_descriptor, pid);
  if (!status || !WIFSIGNALED(*status)) return "ended";
  const char* const name = sigabbrev_np(WTERMSIG(*status));
  return name != nullptr ? fmt::format("was killed by SIG{}", name)
                         : fmt::format("was killed by signal {}", WTERMSIG(*status));
}

}  // namespace

Expected<std::unique_ptr<Tracee>> Tracee::of_process(pid_t pid, const Shared& shared) {
  CLEW_TRY(target::check_is_64_bit(pid));
  target::CatalogOptions options = target::default_catalog_options();
  options.files = shared.files;
  target::Catalog catalog = CLEW_TRY(target::Catalog::of_process(pid, options));
  return std::make_unique<Tracee>(pid, std::move(catalog), shared);
}

Expected<void> Tracee::find_sites(const query::Query& query, bool allow_missing) {
  const StepTime time;
  CLEW_TRY(engine::find_sites(query, catalog_, allow_missing, {}, sites_));
  log_step(pid_, "the query has {} sites in it ({:.1f} ms)", sites_.sites.size(), time.ms());
  // An unwinder may come with a library that is loaded later; C programs load libgcc_s so.
  follows_modules_ = allow_missing || has_exception_source(query) || plan::reads_stack(query) ||
                     names_other_modules(query, catalog_, sites_);
  return {};
}

Expected<void> Tracee::plan_windows(const plan::Plan& plan, const plan::Lowered& lowered) {
  is_planned_ = true;
  sites_.refused.clear();
  sites_.refused_sites.clear();
  return plan_all_windows(
      {.query = plan.query, .programs = lowered.programs, .danger = late_uprobe_danger_});
}

Expected<void> Tracee::plan_all_windows(const WindowRequest& request) {
  const StepTime time;
  CLEW_TRY(engine::plan_windows(sites_, catalog_, *codes_, request));
  size_t windows = 0;
  for (const ModulePlan& module : sites_.modules)
    windows += module.plan.windows.size();
  log_step(pid_, "planned {} windows in {} modules, refused {} sites ({:.1f} ms)", windows,
           sites_.modules.size(), sites_.refused.size(), time.ms());
  for (const collect::RefusedSite& site : sites_.refused)
    log_detail(pid_, "{} of {} is refused: {}", site.kind, site.function, site.reason);
  return {};
}

Expected<void> Tracee::check_readable(const plan::Lowered& lowered) const {
  const bool needs_cpu = calls(lowered, abi::Accessor::Cpu);
  const bool needs_time = needs_cpu || calls(lowered, abi::Accessor::Time);
  if (needs_time && !attachment_->time_is_readable()) {
    return fail(ErrorCode::Refused,
                fmt::format("process {} has forbidden itself to read the time stamp counter "
                            "(PR_SET_TSC); ask for counts, without time, elapsed, cpu and events",
                            pid_));
  }
  if (lowered.layout.contexts.offset != 0 && !attachment_->knows_threads()) {
    return fail(ErrorCode::Refused,
                fmt::format("process {} does not say which of its threads is which without a "
                            "system call: its joins are not answered in place",
                            pid_));
  }
  if (needs_cpu && !attachment_->cpu_is_readable()) {
    return fail(ErrorCode::Refused,
                "this processor does not tell programs its number (it has no rdtscp); ask "
                "without cpu");
  }
  return {};
}

Expected<void> Tracee::attach(const plan::Plan& plan, const plan::Lowered& lowered,
                              const plan::Grouping& grouping, bool follow_forks) {
  lowered_ = &lowered;
  includes_open_ = plan.query.including_open;
  // Planning needs nothing from the process but what other sessions have put there, so it is done
  // before the first stop.
  if (!is_planned_) CLEW_TRY(plan_windows(plan, lowered));
  inline_::OpenOptions options;
  options.lock = std::make_shared<inline_::ProcessLock>(pid_, wait_);
  options.follow_modules = follows_modules_;
  options.region = lowered.layout;
  options.fork_policy = follow_forks ? abi::ForkPolicy::Follow : abi::ForkPolicy::Mute;
  attachment_ =
      std::make_unique<inline_::Attachment>(CLEW_TRY(inline_::Attachment::open(pid_, options)));
  CLEW_TRY(check_readable(lowered));
  // What is installed stays so until this session's windows are there.
  const inline_::ProcessLock::Hold hold = CLEW_TRY(attachment_->hold());
  std::vector<size_t> modules;
  modules.reserve(sites_.modules.size());
  for (const ModulePlan& module : sites_.modules)
    modules.push_back(module.module);
  auto installed = installed_in(modules);
  if (!installed.empty()) {
    sites_.modules.clear();
    sites_.refused.clear();
    sites_.refused_sites.clear();
    CLEW_TRY(plan_all_windows({.query = plan.query,
                               .programs = lowered.programs,
                               .danger = late_uprobe_danger_,
                               .installed = std::move(installed)}));
  }
  names_ = std::make_unique<ProcessNames>(pid_, catalog_, sites_.names);
  if (lowered.walks_stacks) {
    CLEW_TRY(stacks_->share(*attachment_));
    names_->set_stacks(*stacks_);
  }
  intake_ = CLEW_TRY(answer::Intake::make(plan, lowered, grouping, *names_));
  drained_ = std::make_unique<aggregate::Accumulator>(lowered.state);
  CLEW_TRY(make_reader(lowered, follow_forks));
  threads_.watch(0, pid_);
  for (const pid_t other : attachment_->barred()) {
    lost_.push_back(
        fmt::format("process {} runs on the memory and with a thread pointer of process "
                    "{}: what it calls is not counted (no_slot)",
                    other, pid_));
  }
  std::string why_not = why_no_copies_here(lowered, follow_forks);
  report_ = CLEW_TRY(arm_sites(wants_copies_ && why_not.empty()));
  if (why_not.empty()) why_not = why_none_copied(copied_);
  if (wants_copies_ && !why_not.empty() && wait_.tell)
    wait_.tell(fmt::format("no functions of process {} run on copies {}", pid_, why_not));
  note_jumps();
  names_->refresh_threads();
  return {};
}

std::string Tracee::why_no_copies_here(const plan::Lowered& lowered, bool follow_forks) const {
  std::string why = why_no_copies(lowered, follow_forks);
  return why.empty() && !attachment_->may_run_on_copies()
             ? "(another session traces it, or its threads cannot all have slots)"
             : why;
}

Expected<void> Tracee::judge_copies(const plan::Lowered& lowered,
                                    const inline_::Geometry& geometry) {
  if (wants_copies_) copied_ = CLEW_TRY(engine::judge_copies(sites_, lowered, catalog_, geometry));
  return {};
}

std::map<size_t, InstalledWindows> Tracee::installed_in(std::span<const size_t> modules) const {
  std::map<size_t, InstalledWindows> installed;
  for (const size_t module : modules) {
    auto windows = attachment_->installed(catalog_.modules()[module].file.load_bias);
    if (!windows.empty()) installed[module] = std::move(windows);
  }
  return installed;
}

// A child that is forked between the two has no jumps, and its copy is lowered by detach.
Expected<inline_::InstallReport> Tracee::arm_sites(bool wants_copies) {
  CLEW_TRY(attachment_->raise(semaphores()));
  ArmReport report = CLEW_TRY(arm(*attachment_, sites_, *lowered_, catalog_, wants_copies));
  if (wants_copies) copied_ = std::move(report.copied);
  for (const ArmedSite& armed : report.sites)
    note_armed(armed);
  probe_costs_.set_areas(attachment_->runtime_areas());
  note_gone(report.gone);
  return std::move(report.install);
}

void Tracee::note_armed(const ArmedSite& armed) {
  if (!armed.site) return probe_costs_.add(std::nullopt, armed.address, armed.code);
  CLEW_ASSERT(*armed.site < sites_.sites.size());
  const Site& site = sites_.sites[*armed.site];
  CLEW_ASSERT(site.names < sites_.names.size());
  const plan::SiteNames& names = sites_.names[site.names];
  probe_costs_.add(ProbeCosts::Function{.module = names.module, .name = names.function},
                   armed.address, armed.code);
  if (!armed.has_fuel_counts) return;
  fuel_guard_.add(fuel_word(site), fmt::format("{} ({})", names.function, names.probe),
                  armed.address);
}

// Of the static probes whose windows were planned last; where several share one it counts once.
std::vector<uint64_t> Tracee::semaphores() const {
  std::set<uint64_t> addresses;
  for (const ModulePlan& module : sites_.modules) {
    for (const code::Point& point : module.plan.points) {
      const PlannedRequest& request = module.requests[point.request];
      if (is_at_unwinder(lowered_->programs[request.program].point)) continue;
      const target::StaticProbe* const probe = sites_.sites[request.site].static_probe;
      if (probe == nullptr || probe->semaphore_address == 0) continue;
      addresses.insert(catalog_.runtime_address(module.module, probe->semaphore_address));
    }
  }
  return {addresses.begin(), addresses.end()};
}

// They are new ones when they come back, also where nobody has seen that they were away.
void Tracee::note_gone(const std::set<size_t>& modules) {
  for (const size_t module : modules) {
    const target::CatalogModule& gone = catalog_.modules()[module];
    if (gone_modules_++ == 0) first_gone_ = gone.display_name;
    catalog_.note_gone(gone.file.load_bias);
  }
}

Expected<void> Tracee::make_reader(const plan::Lowered& lowered, bool follow_forks) {
  collect::SessionView view = session_memory(*attachment_, lowered.layout);
  view.dense_words = lowered.dense_words;
  view.event_words = lowered.event_words;
  view.follow_forks = follow_forks;
  view.duty_words = lowered.duty_words;
  if (lowered.fuel_offset != 0) {
    view.fuel_offset = lowered.fuel_offset;
    view.fuel_words = plan::kFuelWords;
  }
  reader_ = std::make_unique<collect::Reader>(CLEW_TRY(collect::Reader::make(std::move(view))));
  return {};
}

bool Tracee::gone() const {
  return attachment_->state() != inline_::TargetState::Running;
}

bool Tracee::has_process() const {
  pollfd end = {.fd = pid_descriptor(), .events = POLLIN, .revents = 0};
  return poll(&end, 1, 0) == 0;
}

bool Tracee::has_ended() const {
  return attachment_->state() == inline_::TargetState::Exited;
}

// A child that has hit no probe yet is in no list of the arena: it is looked for, now and then.
bool Tracee::is_over() {
  constexpr std::chrono::seconds kLookPeriod{1};
  if (!gone()) return false;
  meet_children();
  const auto now = std::chrono::steady_clock::now();
  if (!unmet_.empty() || !live_processes().empty() || now < next_look_) return false;
  next_look_ = now + kLookPeriod;
  return attachment_->children().empty();
}

bool Tracee::loader_waits(std::chrono::milliseconds timeout) {
  if (!follows_modules_) return false;
  if (!modules_changed_) {
    modules_changed_ = attachment_->wait(timeout) == inline_::Event::ModulesChanged;
  }
  return modules_changed_;
}

Expected<void> Tracee::follow_modules(const plan::Plan& plan, plan::Grouping& grouping) {
  if (gone()) modules_changed_ = false;
  if (!modules_changed_) return {};
  // The loader waits for us no longer than it would for a tracer that is dead: then it goes on.
  const auto hold = attachment_->try_hold();
  others_change_it_ = hold && !*hold;
  if (others_change_it_) return {};
  modules_changed_ = false;
  Expected<void> done = arm_new_modules(plan, grouping);
  // What was loaded may be unloaded again: nobody knows what it called.
  const bool waited = attachment_->modules_done();
  if (!waited && !plan.contexts.duties.empty()) attachment_->lose_contexts(false);
  if (!waited && !went_on_loading_) {
    went_on_loading_ = true;
    lost_.push_back(
        fmt::format("process {} went on before new modules of it were armed: calls in "
                    "them may be missing",
                    pid_));
  }
  return done;
}

void Tracee::group_sites(const plan::Plan& plan, const plan::Lowered& lowered,
                         plan::Grouping& grouping, size_t first) {
  CLEW_ASSERT(first <= sites_.sites.size() && sites_.names.size() == sites_.sites.size());
  const size_t first_grouped = grouping.group_of_site.size();
  const uint32_t groups_max = lowered.state.dense.empty() ? 1 : lowered.state.dense[0].groups;
  plan::group_sites(plan, std::span(sites_.names).subspan(first), groups_max, grouping);
  CLEW_ASSERT(grouping.group_of_site.size() == first_grouped + sites_.sites.size() - first);
  for (size_t s = first; s < sites_.sites.size(); ++s) {
    sites_.sites[s].group = grouping.group_of_site[first_grouped + s - first];
  }
  refuse_unnumbered(lowered, first);
}

// Open calls of functions beyond abi::kFunctionIdsMax could not be told apart.
void Tracee::refuse_unnumbered(const plan::Lowered& lowered, size_t first) {
  if (lowered.layout.records.payload_words == 0) return;
  for (size_t s = first; s < sites_.sites.size(); ++s) {
    Site& site = sites_.sites[s];
    if (site.function_number < abi::kFunctionIdsMax || !site.group) continue;
    site.group.reset();
    sites_.refused.push_back({.function = sites_.names[site.names].function,
                              .kind = "exit",
                              .reason = "too-many-functions"});
  }
}

Expected<void> Tracee::arm_new_modules(const plan::Plan& plan, plan::Grouping& grouping) {
  for (const uint64_t bias : attachment_->reloaded())
    catalog_.note_gone(bias);
  const std::vector<size_t> modules = CLEW_TRY(catalog_.refresh());
  if (lowered_->walks_stacks) stacks_->look_at(pid_);
  for (const size_t module : modules)
    log_step(pid_, "has loaded {}", catalog_.modules()[module].file.path);
  if (modules.empty()) return {};
  const size_t first = sites_.sites.size();
  const size_t unwinders = sites_.unwinders.size();
  CLEW_TRY(engine::find_sites(plan.query, catalog_, true, modules, sites_));
  if (sites_.sites.size() == first && sites_.unwinders.size() == unwinders) return {};
  group_sites(plan, *lowered_, grouping, first);
  CLEW_TRY(plan_all_windows({.query = plan.query,
                             .programs = lowered_->programs,
                             .danger = late_uprobe_danger_,
                             .first = first,
                             .installed = installed_in(modules)}));
  check_late_duties(plan, first);
  const inline_::InstallReport added = CLEW_TRY(arm_sites(false));
  report_.points += added.points;
  note_jumps();
  return {};
}

// Of joins in place: what cannot be probed would be missed.
void Tracee::check_late_duties(const plan::Plan& plan, size_t first) {
  const auto is_missed = [&](const Site& site) {
    const std::string& function = sites_.names[site.names].function;
    return !plan.contexts.answers(site.source) &&
           std::any_of(sites_.refused.begin(), sites_.refused.end(),
                       [&function](const auto& refused) { return refused.function == function; });
  };
  const auto found = std::find_if(sites_.sites.begin() + static_cast<ptrdiff_t>(first),
                                  sites_.sites.end(), is_missed);
  if (found == sites_.sites.end()) return;
  attachment_->lose_contexts(true);
  lost_.push_back(
      fmt::format("process {} has loaded '{}', which can take no probe: nothing is "
                  "joined in it from then on",
                  pid_, sites_.names[found->names].function));
}

// Of the modules whose windows were planned last.
void Tracee::note_jumps() {
  for (std::string& name : engine::left_by_jump(sites_, *lowered_))
    left_by_jump_.insert(std::move(name));
}

// While there is no room for more keys, the halves stay full, and the probes count what they drop.
bool Tracee::drain_tables() {
  if (drained_->entries() >= kKeysMax) return false;
  return reader_->drain_tables(*drained_) != 0;
}

// Before their counts are named: a child may live for less than a turn of the session.
void Tracee::meet_children() {
  const inline_::ArenaView arena = attachment_->arena();
  const uint32_t children = std::min<uint32_t>(arena.target->process_count, abi::kProcessesMax);
  for (; children_begun_ < children; ++children_begun_)
    unmet_.insert(children_begun_);
  std::erase_if(unmet_, [&](uint32_t i) {
    const auto child = static_cast<pid_t>(arena.target->processes[i].pid);
    if (child == 0) return false;  // It is about to write it.
    if (const auto life = sharer_of(arena.memory_file, child)) children_[i] = *life;
    log_step(pid_, "has forked process {}, which is traced with it", child);
    names_->add_child(i, child);
    stacks_->add_child(pid_, child);
    threads_.watch(i, child);
    return true;
  });
}

// Of code that stacks met and that nothing was known of: compilers at run time make it.
void Tracee::keep_stacks() {
  if (!lowered_->walks_stacks || detached_) return;
  const uint32_t now =
      __atomic_load_n(&attachment_->arena().target->unknown_code[attachment_->geometry().session],
                      __ATOMIC_RELAXED);
  if (std::exchange(unknown_code_, now) != now) stacks_->look_at(pid_);
  stacks_->update();
}

void Tracee::keep_house() {
  meet_children();
  keep_stacks();
  attachment_->look_at_mappings();
  threads_.refresh();
  collect::EventBatch batch;
  (void)reader_->free_dead_slots(threads_, *drained_, batch);
  freed_.append(batch);
  names_->refresh_threads();
}

void Tracee::read_events(collect::EventBatch& round) {
  if (lowered_->form != plan::StateForm::Events) return;
  meet_children();
  collect::EventBatch own = std::exchange(freed_, {});
  reader_->read_events(own);
  round.append(own, number_ << collect::kMemberShift);
}

session::RecordedProcess Tracee::description() const {
  session::RecordedProcess process;
  names_->describe(process);
  return process;
}

uint64_t Tracee::passed() {
  if (!lowered_->passed_dense) return 0;
  aggregate::Accumulator now(lowered_->state);
  read_cells(now);
  now.merge(*drained_);
  if (before_) now.subtract(*before_);
  return passed_before_ + passed_in(now);
}

uint64_t Tracee::passed_in(const aggregate::Accumulator& cells) const {
  if (!lowered_->passed_dense) return 0;
  uint64_t count = 0;
  for (const uint32_t process : cells.processes()) {
    const std::span<const uint64_t> words = cells.group(process, *lowered_->passed_dense, 0);
    if (!words.empty()) count += words[0];
  }
  return count;
}

// What the tracer's own sources have counted belongs to the answer as well.
Expected<aggregate::Table> Tracee::with_counted(aggregate::Table table) {
  CLEW_TRY(table.merge(intake_->counted()));
  return table;
}

Expected<aggregate::Table> Tracee::total() {
  if (lowered_->form == plan::StateForm::Events) return intake_->counted();
  meet_children();
  aggregate::Accumulator all(lowered_->state);
  read_cells(all);
  all.merge(*drained_);
  if (before_) all.subtract(*before_);
  return with_counted(intake_->table_of(all));
}

Expected<aggregate::Table> Tracee::interval() {
  meet_children();
  if (lowered_->layout.generations == 2) {
    const auto part =
        std::exchange(drained_, std::make_unique<aggregate::Accumulator>(lowered_->state));
    if (detached_) {
      read_cells(*part);  // Both halves: what a busy thread kept from an earlier turn too.
    } else {
      CLEW_TRY(reader_->turn(*part));
    }
    passed_before_ += passed_in(*part);
    aggregate::Table table = CLEW_TRY(with_counted(intake_->table_of(*part)));
    intake_->forget_counted();
    return table;
  }
  aggregate::Table now = CLEW_TRY(total());
  aggregate::Table part = previous_ ? now.since(*previous_) : now;
  previous_ = std::move(now);
  return part;
}

// An answer of 0 must not look as if exceptions had been watched.
void Tracee::note_unwinders() {
  if (!sites_.needs_landing || sites_.has_landing) return;
  lost_.push_back(
      fmt::format("no module of process {} had gcc's unwinder (_Unwind_RaiseException): no call "
                  "can have been seen to be left by an exception",
                  pid_));
}

Expected<void> Tracee::detach() {
  if (detached_) return {};
  note_unwinders();
  if (probe_costs_.cost(pid_).samples.all != 0) probe_costs_.log_cost(pid_);
  meet_children();  // While it can be seen whether they are.
  if (attachment_->state() == inline_::TargetState::Exited) {
    if (!may_end_) {
      lost_.push_back(fmt::format("process {} {} during the session", pid_,
                                  end_of(attachment_->pid_descriptor(), pid_)));
    }
  } else if (attachment_->state() == inline_::TargetState::Removed) {
    lost_.push_back(
        fmt::format("somebody removed the probes from process {} (clew detach --force)", pid_));
  } else if (attachment_->state() == inline_::TargetState::Execed && !follows_exec_) {
    lost_.push_back(fmt::format("process {} runs another program now", pid_));
  }
  if (modules_changed_ && !gone()) {
    lost_.push_back(fmt::format(
        "new modules of process {} are not traced: {}", pid_,
        others_change_it_ ? "other sessions changed it" : "they came when the session ended"));
  }
  const Expected<inline_::DetachReport> left = attachment_->detach();
  if (!left) {
    return fail(left.error().code, fmt::format("{}; the probes are still there: clew detach {}",
                                               left.error().message, pid_));
  }
  const inline_::DetachReport& report = *left;
  detached_ = true;
  if (!report.residue) kept_ = report.residue_reason;  // Of copies.
  if (report.repaired != 0) {
    lost_.push_back(fmt::format("{} jumps of earlier sessions were taken out of process {}",
                                report.repaired, pid_));
  }
  return check_left(pid_, report);
}

}  // namespace clew::engine
