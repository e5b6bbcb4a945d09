// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/inline_probes.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <linux/capability.h>
#include <unistd.h>

#include "engine/left_text.h"
#include "target/process.h"

namespace clew::engine {
namespace {

// What the process refuses at the last moment is planned again without it.
constexpr unsigned kRoundsMax = 4;

std::filesystem::path user_space_of(const std::string& who) {
  std::error_code error;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/ns/user", who), error);
}

// Who can read everything anyway. Root of a container may be user 0 of the machine's user
// namespace, but has not these capabilities there.
bool is_root_of_machine(pid_t pid) {
  constexpr uint64_t kReadsAll = uint64_t{1} << CAP_SYS_ADMIN | uint64_t{1} << CAP_SYS_PTRACE;
  const auto facts = target::read_facts(pid);
  return facts && facts->uid == 0 && (facts->capabilities & kReadsAll) == kReadsAll &&
         user_space_of(std::to_string(pid)) == user_space_of("self");
}

std::string note_of(pid_t pid, const InlineSites& sites, FiringForm form) {
  std::string note = fmt::format("process {}: {} probes inline", pid, sites.enablings.size());
  if (form == FiringForm::Private) note += ", self-> variables are the threads' own";
  for (const auto& [reason, count] : sites.refusals)
    note += fmt::format(", {} by uprobes ({})", count, reason);
  return note;
}

std::map<size_t, InstalledWindows> installed_in(const InlineProcess& process,
                                                const target::Catalog& catalog) {
  std::map<size_t, InstalledWindows> installed;
  for (size_t i = 0; i < catalog.modules().size(); ++i) {
    auto windows = process.installed(catalog.modules()[i].file.load_bias);
    if (!windows.empty()) installed[i] = std::move(windows);
  }
  return installed;
}

// A clause that only a process can run: the script is to be refused.
bool leaves_out_extension(const CompiledScript& compiled,
                          const std::map<uint32_t, std::string>& left_out) {
  return std::any_of(left_out.begin(), left_out.end(), [&](const auto& one) {
    const auto& clauses = compiled.enablings[one.first].clauses;
    return std::any_of(clauses.begin(), clauses.end(),
                       [&](uint32_t clause) { return compiled.wants_process(clause); });
  });
}

// False when some points were refused; they are left out of the next plan.
Expected<bool> install(InlineProcess& process, InlineSitePlanner& planner, const InlineSites& sites,
                       std::span<const abi::MachineEnabled> names) {
  std::vector<ModulePoints> modules;
  modules.reserve(sites.modules.size());
  for (const InlineModule& module : sites.modules)
    modules.push_back(CLEW_TRY(planner.points_of(module, process.cells(), names)));
  const ArmReport armed = CLEW_TRY(process.arm(modules));
  const inline_::InstallReport& report = armed.install;
  guard_bodies(process, planner, sites.modules, armed);
  CLEW_TRY(process.raise(planner.semaphores()));
  for (const inline_::PointRefusal& refusal : report.refusals) {
    const InlineModule& module = sites.modules[refusal.module];
    planner.leave_out(module.enablings[module.plan.points[refusal.point].request],
                      std::string(code::name(refusal.reason)));
  }
  return report.refusals.empty();
}

// One that could not begin, and could not leave either, as a debugger came between.
bool has_session_of_ours(pid_t pid) {
  const auto arena = inline_::look_at(pid);
  return arena &&
         std::any_of(arena->sessions.begin(), arena->sessions.end(),
                     [](const inline_::SessionInfo& one) { return one.tracer == getpid(); });
}

}  // namespace

void InlineProbes::arm(const CompiledScript& compiled, const kernel::MachineState& state,
                       const UprobeLocks& locks) {
  private_clauses_ = compiled.generated.privates.clauses;
  firings_ = std::make_unique<InlineFirings>(compiled);
  for (const pid_t pid : compiled.named_pids)
    arm_process(pid, {compiled, state, locks, *firings_});
  for (const uint32_t enabling : enablings_) {
    const auto& clauses = compiled.enablings[enabling].clauses;
    clauses_.insert(clauses.begin(), clauses.end());
  }
  if (!enablings_.empty()) {
    clauses_.insert(compiled.error_clauses.begin(), compiled.error_clauses.end());
  }
}

void InlineProbes::arm_process(pid_t pid, const Arming& arming) {
  const CompiledScript& compiled = arming.compiled;
  const kernel::MachineState& state = arming.state;
  InlineFirings& firings = arming.firings;
  const auto give_up = [&](const Error& error) {
    for (uint32_t i = 0; i < compiled.enablings.size(); ++i) {
      if (compiled.enablings[i].probe.pid == pid) refusals_[i] = error.message;
    }
    notes_.push_back(fmt::format("process {}: all probes by uprobes: {}", pid, error.message));
    given_up_.push_back(pid);
  };
  if (firings.could_be_led_astray(pid) && !is_root_of_machine(pid)) {
    return give_up({ErrorCode::Refused, "it could choose what other clauses read [untrusted]"});
  }
  auto catalog = target::Catalog::of_process(pid, target::default_catalog_options());
  if (!catalog) return give_up(catalog.error());
  auto plans = std::make_unique<InlinePlans>(compiled, std::move(*catalog), firings);
  InlineSitePlanner& planner = plans->planner;
  for (unsigned round = 0; round < kRoundsMax; ++round) {
    InlineSites sites = planner.plan();
    refusals_.insert(planner.left_out().begin(), planner.left_out().end());
    if (leaves_out_extension(compiled, planner.left_out())) return;  // It is for nothing.
    if (sites.enablings.empty()) return notes_.push_back(note_of(pid, sites, FiringForm::Shared));
    auto process = InlineProcess::open(arming.locks.of(pid), state,
                                       InlineCells(compiled.generated, firings.room(), pid),
                                       firings.walk_stacks());
    if (!process) return give_up(process.error());
    // What is installed stays so until this session's windows are there.
    const auto hold = (*process)->hold();
    if (!hold) return give_up(hold.error());
    auto others = installed_in(**process, plans->catalog);
    if (!others.empty()) {
      planner.set_installed(std::move(others));
      sites = planner.plan();
      refusals_.insert(planner.left_out().begin(), planner.left_out().end());
    }
    planner.choose_form(sites, (*process)->cells(), state.enablings, (*process)->has_counter());
    const bool is_private = planner.form() == FiringForm::Private;
    const auto installed = install(**process, planner, sites, state.enablings);
    if (!installed && is_private && installed.error().code == ErrorCode::Limit) {
      planner.share_variables();  // Its code is longer.
      continue;
    }
    if (!installed) return give_up(installed.error());
    if (!*installed) continue;  // The process is detached from.
    notes_.push_back(note_of(pid, sites, planner.form()));
    if (is_private) private_pids_.insert(pid);
    enablings_.insert(sites.enablings.begin(), sites.enablings.end());
    auto libraries = InlineLibraries::follow(**process, std::move(plans), sites, state.enablings);
    if (libraries) libraries_.push_back(std::move(libraries));
    return processes_.push_back(std::move(*process));
  }
  give_up({ErrorCode::Refused, "its text changes all the time"});
}

bool InlineProbes::follows(pid_t pid) const {
  return std::any_of(libraries_.begin(), libraries_.end(),
                     [pid](const auto& one) { return one->pid() == pid; });
}

// Processes do not wake us when they have recorded something. One that may open libraries is waited
// for without delay; several take turns.
std::chrono::nanoseconds InlineProbes::patience() {
  constexpr std::chrono::milliseconds kRecordPeriod{20};
  constexpr std::chrono::milliseconds kLoaderPeriod{2};
  if (processes_.empty()) return std::chrono::nanoseconds::max();
  if (libraries_.empty()) return kRecordPeriod;
  const std::chrono::milliseconds share{libraries_.size() == 1 ? kLoaderPeriod.count() : 0};
  follow_libraries(share);
  return kLoaderPeriod - share;
}

void InlineProbes::follow_libraries(std::chrono::milliseconds timeout) {
  std::vector<std::string> lines;
  for (const auto& libraries : libraries_)
    libraries->look(timeout, lines);
  std::erase_if(libraries_, [](const auto& one) { return one->is_over(); });
  for (const std::string& line : lines)
    tell_(line);
}

void InlineProbes::read(const collect::TakeRecord& take) {
  for (const auto& process : processes_)
    process->read(take);
}

void InlineProbes::add_cells(uint32_t aggregation, bool takes,
                             std::vector<kernel::MachineAggregate>& entries) {
  for (const auto& process : processes_)
    process->add_cells(aggregation, takes, entries);
}

void InlineProbes::add_losses(abi::MachineLosses& losses) {
  for (const auto& process : processes_)
    process->add_losses(losses);
}

void InlineProbes::keep_house() {
  for (const auto& process : processes_)
    process->keep_house();
  read_samples();
}

Expected<void> InlineProbes::measure(std::optional<double> max_overhead) {
  meter_ = CLEW_TRY(CostMeter::open(max_overhead));
  return {};
}

void InlineProbes::begin_measuring() {
  if (meter_) meter_->begin();
}

void InlineProbes::read_samples() {
  if (!meter_ || !meter_->is_measuring()) return;
  std::map<pid_t, InlineProcess*> owners;
  for (const auto& process : processes_)
    owners[process->pid()] = process.get();
  meter_->read([&owners](const kernel::CpuSample& sample) {
    const auto owner = owners.find(sample.pid);
    if (owner != owners.end()) owner->second->costs().take(sample);
  });
  has_new_samples_ = true;
}

collect::Cost InlineProbes::cost() {
  if (!meter_ || processes_.empty()) return {};
  collect::Cost cost = meter_->cost();
  for (const auto& process : processes_)
    process->add_cost(cost);
  if (!meter_->is_measuring()) cost.processes.clear();
  return cost;
}

std::vector<collect::DisarmedProbe> InlineProbes::disarm_spinning() {
  std::vector<collect::DisarmedProbe> all;
  std::vector<std::string> problems;
  for (const auto& process : processes_) {
    for (collect::DisarmedProbe& disarmed : process->disarm_spinning(problems))
      all.push_back(std::move(disarmed));
  }
  const auto bound = meter_ ? meter_->bound() : std::nullopt;
  const bool is_judged = bound && std::exchange(has_new_samples_, false);
  for (const auto& process : processes_) {
    if (!is_judged) break;
    for (collect::DisarmedProbe& disarmed : process->keep_below(*bound, problems))
      all.push_back(std::move(disarmed));
  }
  for (const std::string& problem : problems)
    tell_(problem);
  return all;
}

std::vector<std::string> InlineProbes::detach() {
  read_samples();
  if (meter_) meter_->end();
  std::vector<std::string> problems;
  libraries_.clear();
  for (const auto& process : processes_) {
    const auto report = process->detach();
    if (!report) {
      problems.push_back(
          fmt::format("process {}: {}; see clew ps", process->pid(), report.error().message));
      continue;
    }
    const auto checked = check_left(process->pid(), *report);
    if (!checked) problems.push_back(checked.error().message);
  }
  for (const pid_t pid : given_up_) {
    if (has_session_of_ours(pid))
      problems.push_back(fmt::format("process {}: memory is left; clew detach {}", pid, pid));
  }
  leaves_anything_ = !problems.empty();
  return problems;
}

}  // namespace clew::engine
