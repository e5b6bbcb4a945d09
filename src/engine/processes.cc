// SPDX-License-Identifier: Apache-2.0
#include "engine/processes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <x86intrin.h>

#include "base/clock_ns.h"
#include "base/log.h"
#include "collect/reader.h"
#include "engine/compile.h"
#include "engine/memory_need.h"
#include "engine/open_files.h"
#include "target/process.h"

namespace clew::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Rings are read more often while they fill fast.
constexpr milliseconds kEventPeriodMin{1};
constexpr milliseconds kEventPeriodMax{20};
constexpr milliseconds kFuelPeriod{10};
constexpr milliseconds kLoaderPeriod{2};
constexpr milliseconds kPassedPeriod{2};
// Tables are looked at more often while halves become full.
constexpr milliseconds kTablePeriodMin{1};
constexpr milliseconds kTablePeriodMax{8};
// From here on it takes a while.
constexpr size_t kManyProcesses = 64;
constexpr size_t kFoldedCostsMax = 64;
constexpr size_t kOtherSources = 16;  // Of a session, which have numbers, too.

// A program that begins again and again has the same to say each time.
template <typename T>
void leave_each_once(std::vector<T>& all) {
  std::vector<T> once;
  for (T& one : all) {
    if (std::find(once.begin(), once.end(), one) == once.end()) once.push_back(std::move(one));
  }
  all = std::move(once);
}

bool is_stopped(const inline_::LockWait& wait) {
  pollfd stop = {.fd = wait.stop_descriptor, .events = POLLIN, .revents = 0};
  return wait.stop_descriptor >= 0 && poll(&stop, 1, 0) > 0;
}

}  // namespace

Expected<void> Processes::check_room() const {
  if (!input_.checks_memory) return {};
  const std::set<pid_t> all = pids();
  const auto room = check_memory(std::vector<pid_t>(all.begin(), all.end()), input_.lowered.layout);
  if (room) return {};
  return fail(room.error().code, room.error().message + "; -y traces it all the same");
}

Expected<void> Processes::attach(const inline_::LockWait& wait) {
  wait_ = wait;
  if (input_.later || tracees_.size() > kManyProcesses) allow_many_files();
  meter_ = CLEW_TRY(CostMeter::open(input_.max_overhead));
  table_period_ = kTablePeriodMax;
  std::optional<Error> first;
  std::vector<std::unique_ptr<Tracee>> attached;
  for (auto& tracee : tracees_) {
    if (is_stopped(wait_)) return fail(ErrorCode::Refused, "it was ended before it began");
    if (input_.progress && tracees_.size() > kManyProcesses)
      input_.progress(fmt::format("attaching to {} of {}", attached.size() + 1, tracees_.size()));
    tracee->set_wait(wait_);
    auto done = tracee->attach(input_.plan, input_.lowered, input_.grouping, follows());
    if (done) {
      attached.push_back(std::move(tracee));
      continue;
    }
    if (tracees_.size() == 1 || tracee->is_command()) return done;
    const std::string& reason = done.error().message;
    wait_.tell(fmt::format("process {} is left out: {}", tracee->pid(), reason));
    left_out_.push_back({.process = tracee->pid(), .reason = reason});
    first = first.value_or(done.error());
    tracee.reset();
  }
  if (first && attached.empty()) return tl::unexpected(*first);
  tracees_ = std::move(attached);
  began_with_ = tracees_.size();
  for (const auto& tracee : tracees_) {
    number(*tracee);
    if (tracee->is_command()) command_ = tracee->pid();
  }
  watch_execs();
  return {};
}

void Processes::number(Tracee& tracee) {
  const uint32_t number = input_.numbers.next(*this);
  tracee.set_number(number);
  by_number_.resize(number + 1);
  by_number_[number] = &tracee;
}

void Processes::watch_execs() {
  if (!follows()) return;
  const std::set<pid_t> all = input_.follow_forks ? pids() : std::set<pid_t>();
  execs_ = ExecWatch::of({all.begin(), all.end()},
                         input_.later ? input_.later->modules : std::vector<target::Pattern>{});
  if (!execs_->is_told()) return;
  begun_.emplace(BegunPrograms::Session{
      .plan = input_.plan,
      .lowered = input_.lowered,
      .grouping = input_.grouping,
      .shared = input_.shared,
      .checks_memory = input_.checks_memory,
      .is_meant = input_.later ? input_.later->is_meant : std::function<bool(pid_t)>{}});
  for (const auto& tracee : tracees_)
    tracee->set_follows_exec();
  if (!input_.later) return;
  for (const auto& tracee : tracees_)
    tracee->set_may_end();
  add_missed();
}

// Those that came behind the choice of the processes, and before the kernel told of more.
void Processes::add_missed() {
  std::set<pid_t> found;
  for (const target::Pattern& module : input_.later->modules) {
    const auto some = target::find_processes_with(module.text());
    if (some) found.insert(some->begin(), some->end());
  }
  const auto now_ns = static_cast<uint64_t>(clock_ns(CLOCK_MONOTONIC));
  std::vector<BegunProgram> missed;
  for (const pid_t pid : found) {
    if (!input_.later->known.contains(pid))
      missed.push_back({.pid = pid, .time_ns = now_ns, .name = {}, .has_module = true});
  }
  begun_->add(std::move(missed));
}

bool Processes::is_traced(pid_t pid) const {
  const auto maps = target::read_memory_map(pid);
  return std::any_of(tracees_.begin(), tracees_.end(), [&](const auto& tracee) {
    return tracee->pid() == pid ? !tracee->gone() : maps && tracee->is_in(*maps);
  });
}

std::set<pid_t> Processes::pids() const {
  std::set<pid_t> pids;
  for (const auto& tracee : tracees_)
    pids.insert(tracee->pid());
  return pids;
}

bool Processes::has_ended(pid_t pid) const {
  return std::any_of(tracees_.begin(), tracees_.end(), [pid](const auto& tracee) {
    return tracee->pid() == pid && (tracee->has_ended() || !tracee->has_process());
  });
}

bool Processes::gone() const {
  if (begun_ && input_.later) return command_ && has_ended(*command_);  // Others may come.
  const bool may_begin_more =
      begun_ && std::any_of(tracees_.begin(), tracees_.end(),
                            [](const auto& tracee) { return tracee->has_process(); });
  return !may_begin_more && std::all_of(tracees_.begin(), tracees_.end(),
                                        [](const auto& tracee) { return tracee->gone(); });
}

std::string Processes::what_it_takes() const {
  if (tracees_.size() <= kManyProcesses) return "";
  const std::set<pid_t> all = pids();
  const MemoryNeed need =
      memory_need(std::vector<pid_t>(all.begin(), all.end()), input_.lowered.layout);
  return fmt::format(
      "tracing {} processes with {} threads: each stands still for some milliseconds, one after "
      "the "
      "other, and all together take {:.0f} MiB at most",
      all.size(), need.threads, static_cast<double>(need.bytes) / (1 << 20));
}

// --- the window --------------------------------------------------------------------------------

void Processes::begin_window() {
  has_window_ = true;
  for (const auto& tracee : tracees_)
    tracee->begin_window();
}

Expected<void> Processes::start(uint64_t begin_ticks) {
  is_started_ = true;
  meter_->begin();
  begin_ticks_ = begin_ticks;
  return {};
}

// Where the kernel has no barrier (nohz_full), a store of a probe takes far less than what follows.
void Processes::settle_window() {
  if (!has_generations()) return;
  (void)collect::barrier_everywhere();
  for (const auto& tracee : tracees_)
    tracee->settle_window();
}

void Processes::stop(uint64_t end_ticks) {
  end_ticks_ = end_ticks;
  for (const auto& tracee : tracees_)
    tracee->end_window();
}

// --- while it runs -----------------------------------------------------------------------------

void Processes::add_descriptors(std::vector<pollfd>& descriptors) {
  for (const auto& tracee : tracees_) {
    if (tracee->gone()) continue;
    descriptors.push_back({.fd = tracee->pid_descriptor(), .events = POLLIN, .revents = 0});
  }
  for (const int notices : execs_ ? execs_->descriptors() : std::vector<int>{})
    descriptors.push_back({.fd = notices, .events = POLLIN, .revents = 0});
}

nanoseconds Processes::patience() {
  nanoseconds left = nanoseconds::max();
  const auto at_most = [&left](nanoseconds period) { left = std::min(left, period); };
  if (has_events()) at_most(event_period_);
  if (input_.lowered.form == plan::StateForm::Table) at_most(table_period_);
  if (input_.lowered.fuel_offset != 0) at_most(kFuelPeriod);
  if (input_.lowered.passed_dense) at_most(kPassedPeriod);
  if (begun_ && !begun_->empty()) at_most(kLoaderPeriod);
  // One process is waited for without delay; several take turns.
  const milliseconds share = tracees_.size() == 1 ? kLoaderPeriod : milliseconds(0);
  for (const auto& tracee : tracees_) {
    if (tracee->gone()) continue;
    if (tracee->loader_waits(share)) at_most(nanoseconds(0));
    if (tracee->follows_modules()) at_most(kLoaderPeriod - share);
  }
  return left;
}

Expected<void> Processes::turn() {
  CLEW_TRY(follow_modules());
  drain_tables();
  CLEW_TRY(fold_ended());
  follow_execs();
  return {};
}

// One of several whose new modules cannot be looked at goes on with the old ones.
Expected<void> Processes::follow_modules() {
  for (const auto& tracee : tracees_) {
    Expected<void> followed = tracee->follow_modules(input_.plan, input_.grouping);
    if (followed) continue;
    if (tracees_.size() == 1 && !input_.later) return followed;
    tracee->note_lost(fmt::format("new modules of process {} are not traced: {}", tracee->pid(),
                                  followed.error().message));
  }
  return {};
}

void Processes::drain_tables() {
  if (input_.lowered.form != plan::StateForm::Table) return;
  bool any = false;
  for (const auto& tracee : tracees_) {
    any = tracee->drain_tables() || any;
  }
  table_period_ = any ? kTablePeriodMin : std::min(2 * table_period_, kTablePeriodMax);
}

void Processes::follow_execs() {
  if (!begun_) return;
  begun_->add(execs_->look());
  begun_->arm_ready(wait_,
                    {.is_traced = [this](pid_t pid) { return is_traced(pid); },
                     .room = [this] { return room(); },
                     .take = [this](std::unique_ptr<Tracee> tracee) { add(std::move(tracee)); }});
}

size_t Processes::room() const {
  const size_t numbers =
      session::kMembersMax -
      std::min<size_t>(input_.numbers.size() + kOtherSources, session::kMembersMax);
  return std::min(kProcessesMax - std::min(tracees_.size(), kProcessesMax), numbers);
}

// Where programs come and go, those that came and have gone leave their counts. Not where more of
// them is asked for when the session ends: events, stacks, calls that are open.
Expected<void> Processes::fold_ended() {
  const bool is_counted = input_.lowered.form != plan::StateForm::Events &&
                          !input_.lowered.walks_stacks && !input_.plan.query.including_open;
  if (!is_counted || !is_started_) return {};
  for (size_t i = began_with_; i < tracees_.size();) {
    Tracee& tracee = *tracees_[i];
    if (!tracee.is_over()) {
      ++i;
      continue;
    }
    CLEW_TRY(fold(tracee));
    std::replace(by_number_.begin(), by_number_.end(), &tracee, static_cast<Tracee*>(nullptr));
    tracees_.erase(tracees_.begin() + static_cast<ptrdiff_t>(i));
  }
  return {};
}

Expected<void> Processes::fold(Tracee& tracee) {
  // First: a thread that has died within a probe keeps an interval's counts until then.
  const auto left = tracee.detach();
  if (!left) tracee.note_lost(left.error().message);
  const uint64_t passed = tracee.passed();
  aggregate::Table total = CLEW_TRY(tracee.total());
  aggregate::Table interval = CLEW_TRY(tracee.interval());
  for (const Site& site : tracee.sites().sites)
    folded_sources_.insert(site.source);
  log_step(tracee.pid(), "has ended, and leaves its counts");
  if (!folded_) {
    folded_ = Folded{.total = std::move(total), .interval = std::move(interval), .losses = {}};
  } else {
    CLEW_TRY(folded_->total.merge(total));
    CLEW_TRY(folded_->interval.merge(interval));
  }
  folded_->losses.merge(tracee.losses());
  folded_->losses.cost.keep_hottest(kFoldedCostsMax);
  leave_each_once(folded_->losses.refused);
  leave_each_once(folded_->losses.lost);
  leave_each_once(folded_->losses.left_by_jump);
  folded_->passed += passed;
  return {};
}

// Its own window begins now.
void Processes::add(std::unique_ptr<Tracee> tracee) {
  number(*tracee);
  tracee->set_follows_exec();
  if (has_window_) tracee->begin_window();
  if (has_window_ && has_generations()) {
    (void)collect::barrier_everywhere();
    tracee->settle_window();
  }
  log_step(tracee->pid(), "is traced from now on");
  tracees_.push_back(std::move(tracee));
}

void Processes::keep_house() {
  for (const auto& tracee : tracees_)
    tracee->keep_house();
  read_samples();
}

// Most are of processes that nobody traces.
void Processes::read_samples() {
  if (!meter_->is_measuring()) return;
  std::map<pid_t, Tracee*> owners;
  meter_->read([&](const kernel::CpuSample& sample) {
    const auto [owner, is_new] = owners.try_emplace(sample.pid, nullptr);
    if (is_new) {
      const auto found =
          std::find_if(tracees_.begin(), tracees_.end(),
                       [&sample](const auto& tracee) { return tracee->is_sampled_as(sample.pid); });
      if (found != tracees_.end()) owner->second = found->get();
    }
    if (owner->second != nullptr) owner->second->take_sample(sample);
  });
  has_new_samples_ = true;
}

std::vector<collect::DisarmedProbe> Processes::disarm_spinning() {
  std::vector<collect::DisarmedProbe> all;
  for (const auto& tracee : tracees_) {
    auto some = tracee->disarm_spinning();
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  const auto bound = meter_->bound();
  if (!bound || !std::exchange(has_new_samples_, false)) return all;
  for (const auto& tracee : tracees_) {
    auto some = tracee->keep_below(*bound);
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

// --- events and counts -------------------------------------------------------------------------

bool Processes::has_events() const {
  return input_.lowered.form == plan::StateForm::Events;
}

uint64_t Processes::now() const {
  return __rdtsc();
}

// As if all were in one ring: of an eighth of it.
void Processes::pace_events(const collect::EventBatch& read) {
  constexpr uint64_t kMuch = uint64_t{1} << (plan::kRingSizeLog2 - 3);
  const uint64_t bytes = abi::kEventHeaderBytes * read.size() + read.words().size_bytes();
  event_period_ = bytes > kMuch ? std::max(event_period_ / 2, kEventPeriodMin)
                                : std::min(2 * event_period_, kEventPeriodMax);
}

Expected<void> Processes::read_events(collect::EventBatch& round) {
  collect::EventBatch all;
  for (const auto& tracee : tracees_)
    tracee->read_events(all);
  pace_events(all);
  if (begin_ticks_ == 0) {
    round.append(all);
    return {};
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const collect::Event event = all.at(i);
    if (event.time >= begin_ticks_ && event.time <= end_ticks_) round.push(event);
  }
  return {};
}

void Processes::take_events(const collect::EventBatch& events, collect::EventRange range,
                            answer::RowBatch& rows) {
  by_number_[collect::member_of(events.at(range.begin))]->take_events(events, range, rows);
}

uint64_t Processes::passed() {
  uint64_t sum = folded_ ? folded_->passed : 0;
  for (const auto& tracee : tracees_)
    sum += tracee->passed();
  return sum;
}

Expected<aggregate::Table> Processes::merged(Part part) {
  aggregate::Table table = CLEW_TRY(((*tracees_[0]).*part)());
  for (const auto& tracee : std::span(tracees_).subspan(1)) {
    const aggregate::Table some = CLEW_TRY(((*tracee).*part)());
    CLEW_TRY(table.merge(some));
  }
  return table;
}

Expected<aggregate::Table> Processes::interval() {
  aggregate::Table table = CLEW_TRY(merged(&Tracee::interval));
  if (!folded_) return table;
  CLEW_TRY(table.merge(folded_->interval));
  folded_->interval = aggregate::Table(table.schema());
  // As in tracees: with generations the total is of what no interval has had.
  if (has_generations()) folded_->total = aggregate::Table(table.schema());
  return table;
}

Expected<aggregate::Table> Processes::total() {
  aggregate::Table table = CLEW_TRY(merged(&Tracee::total));
  if (folded_) CLEW_TRY(table.merge(folded_->total));
  return table;
}

void Processes::fire(uint16_t source, int64_t monotonic_ns, answer::RowBatch& rows) {
  tracees_[0]->fire(source, monotonic_ns, rows);
}

void Processes::take_open_calls(uint64_t end_ticks, answer::RowBatch& rows) {
  for (const auto& tracee : tracees_)
    tracee->take_open_calls(end_ticks, rows);
}

// --- the end -----------------------------------------------------------------------------------

// What is traced may have begun one more program since the last look, and ended with it.
void Processes::end_execs() {
  if (!begun_) return;
  begun_->add(execs_->look());
  begun_->end();
}

// Only with allow_missing: what a source waited for may have come until now.
void Processes::note_unmatched() {
  std::set<uint16_t> matched = folded_sources_;
  for (const auto& tracee : tracees_) {
    for (const Site& site : tracee->sites().sites)
      matched.insert(site.source);
  }
  unmatched_ = unmatched_sources(input_.plan.query, false, matched);
}

// All are left, whatever happens to one.
Expected<void> Processes::detach() {
  read_samples();
  if (meter_) meter_->end();
  end_execs();
  note_unmatched();
  Expected<void> first;
  for (const auto& tracee : tracees_) {
    Expected<void> done = tracee->detach();
    if (wait_.tell && !tracee->kept().empty())
      wait_.tell(fmt::format("process {}: {}", tracee->pid(), tracee->kept()));
    if (done) continue;
    if (!first) {
      tracee->note_lost(done.error().message);
      continue;
    }
    first = std::move(done);
  }
  return first;
}

collect::Losses Processes::losses() {
  collect::Losses all = folded_ ? folded_->losses : collect::Losses{};
  for (const auto& tracee : tracees_)
    all.merge(tracee->losses());
  const auto tell = [&all](const std::vector<std::string>& told) {
    all.lost.insert(all.lost.end(), told.begin(), told.end());
  };
  tell(unmatched_);
  if (execs_) tell(execs_->told());
  if (begun_) tell(begun_->told());
  all.left_out.insert(all.left_out.end(), left_out_.begin(), left_out_.end());
  if (meter_) all.cost.merge(meter_->cost());
  if (meter_ && !meter_->is_measuring()) all.cost.processes.clear();
  return all;
}

}  // namespace clew::engine
