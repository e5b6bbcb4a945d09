// SPDX-License-Identifier: Apache-2.0
#include "engine/run.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <time.h>
#include <x86intrin.h>

#include "collect/event_merge.h"
#include "collect/spill.h"
#include "engine/begun_programs.h"
#include "engine/compile.h"
#include "engine/exec_watch.h"
#include "engine/memory_need.h"
#include "engine/recording.h"
#include "engine/stop_signal.h"
#include "engine/tracee.h"
#include "engine/uprobe_sites.h"
#include "plan/held.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "plan/root.h"
#include "query/print.h"
#include "query/query.h"

namespace clew::engine {
namespace {

using query::SourceKind;
using Time = std::chrono::steady_clock;
using Nanoseconds = std::chrono::nanoseconds;

constexpr auto kHousePeriod = std::chrono::milliseconds(200);
constexpr auto kEventPeriod = std::chrono::milliseconds(20);
constexpr auto kFuelPeriod = std::chrono::milliseconds(10);
constexpr auto kLoaderPeriod = std::chrono::milliseconds(2);
constexpr auto kPassedPeriod = std::chrono::milliseconds(2);
// Tables are looked at more often while halves become full.
constexpr auto kTablePeriodMin = std::chrono::milliseconds(1);
constexpr auto kTablePeriodMax = std::chrono::milliseconds(8);

int64_t monotonic_now_ns() {
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// A source that fires in the tracer, and when it does next.
struct HostTick {
  uint16_t source;
  Nanoseconds period;
  Time::time_point next;
};

// One query being answered. The functions are called in the order of their declaration.
class Session {
 public:
  Session(const Request& request, Compiled compiled, output::RowSink& sink, Notices& notices)
      : request_(request),
        sink_(sink),
        notices_(notices),
        launched_(std::move(compiled.launched)),
        kernel_(std::move(compiled.kernel)),
        uprobes_(std::move(compiled.uprobes)),
        tracees_(std::move(compiled.tracees)),
        plan_(std::move(compiled.plan)),
        lowered_(std::move(compiled.lowered)),
        grouping_(std::move(compiled.grouping)),
        shared_(std::move(compiled.shared)),
        started_(compiled.started),
        left_out_(std::move(compiled.left_out)) {
    list_traced();
  }

  Expected<void> check_room() const;
  Expected<void> arm(int stop_descriptor);
  Expected<void> answer(int stop_descriptor);
  // Keeps the first fault for close().
  void note(Expected<void> done);
  // Removes the probes and gives the rest of the answer. Errors: what was noted.
  Expected<Outcome> close(int stop_descriptor);

 private:
  void list_traced();
  Expected<void> attach_all(int stop_descriptor);
  [[nodiscard]] inline_::LockWait lock_wait(int stop_descriptor);
  void attach_uprobes(int stop_descriptor);
  Expected<void> begin();
  void end();
  [[nodiscard]] collect::EventBatch in_window(collect::EventBatch events) const;
  [[nodiscard]] std::string armed_text(const collect::Losses& now) const;
  [[nodiscard]] bool has_events() const;
  void start_windows();
  void find_open_calls();
  void push_open_rows();
  void watch_execs();
  void follow_execs(int stop_descriptor);
  void add_tracee(std::unique_ptr<Tracee> tracee);
  [[nodiscard]] Time::time_point next_wake() const;
  [[nodiscard]] bool wait(int stop_descriptor);
  void fire_ticks();
  void fire_all(SourceKind kind);
  void fire(uint16_t source);
  void disarm_spinning();
  void keep_house();
  [[nodiscard]] uint64_t passed() const;
  [[nodiscard]] bool finished();
  Expected<void> end_interval(bool partial);
  [[nodiscard]] bool interval_is_over() const;
  void drain_tables();
  Expected<void> follow_modules();
  Expected<void> open_spill();
  Expected<void> push_events(bool all);
  Expected<void> push_spilled(bool all);
  [[nodiscard]] Recording recording();
  void push_event(const collect::Event& event);
  Expected<aggregate::Table> merged(bool interval);
  void push_rows(const aggregate::Table& table);
  collect::Losses losses();
  [[nodiscard]] bool has_process_ended(pid_t pid) const;

  const Request& request_;
  output::RowSink& sink_;
  Notices& notices_;
  std::optional<inline_::Launched> launched_;
  std::shared_ptr<inline_::LeaveTime> leave_time_ =  // Of all tracees together.
      std::make_shared<inline_::LeaveTime>(inline_::LeaveTime::kUsual);
  std::unique_ptr<KernelTracee> kernel_;
  std::unique_ptr<KernelTracee> uprobes_;  // In the tracees.
  std::vector<collect::RefusedSite> without_uprobe_;
  // After it, so that processes are left first: jumps in them are what must not stay.
  std::vector<std::unique_ptr<Tracee>> tracees_;
  // The tracees, the kernel, the uprobes, then tracees that came later.
  std::vector<Traced*> traced_;
  size_t kernel_begin_ = 0;  // Of them, those that are the kernel's.
  size_t kernel_end_ = 0;
  bool has_window_ = false;  // Of time, for all of them.
  plan::Plan plan_;
  plan::Lowered lowered_;
  plan::Grouping grouping_;
  Tracee::Shared shared_;
  Time::time_point started_;
  double attach_ms_ = 0;
  std::vector<collect::LeftOut> left_out_;
  Time::time_point armed_;  // And begun.
  // Of the events that count: where several are traced, in all of them.
  uint64_t begin_ticks_ = 0;
  uint64_t end_ticks_ = UINT64_MAX;
  double window_ms_ = 0;
  std::optional<Time::time_point> end_;
  std::optional<Time::time_point> interval_end_;
  Time::time_point house_ = Time::now();
  std::chrono::milliseconds table_period_ = kTablePeriodMax;
  uint64_t intervals_ = 0;
  int64_t interval_begin_ns_ = 0;  // Of the time of day.
  uint64_t events_left_ = UINT64_MAX;
  Expected<void> fault_;
  std::vector<std::string> lost_;
  std::vector<aggregate::Row> open_rows_;
  // With Request::follow_forks, of processes.
  std::optional<ExecWatch> execs_;
  std::optional<BegunPrograms> begun_;
  std::vector<HostTick> ticks_;
  collect::EventMerge events_;  // Of all processes.
  // With Request::spill_path.
  std::vector<plan::HeldCapture> held_;
  std::unique_ptr<collect::SpillWriter> spill_;
  std::unique_ptr<collect::SpillReader> spilled_;
  collect::SpillRound round_;  // What was read last,
  size_t next_spilled_ = 0;    // and its first event that is not pushed yet.
};

Expected<void> Session::check_room() const {
  std::vector<pid_t> pids;
  pids.reserve(tracees_.size());
  for (const auto& tracee : tracees_)
    pids.push_back(tracee->pid());
  const auto room = request_.is_sure ? Expected<void>{} : check_memory(pids, lowered_.layout);
  if (room) return {};
  return fail(room.error().code, room.error().message + "; -y traces it all the same");
}

Expected<void> Session::arm(int stop_descriptor) {
  notices_.progress("attaching");
  CLEW_TRY(check_room());
  CLEW_TRY(attach_all(stop_descriptor));
  if (kernel_) CLEW_TRY(kernel_->attach());
  if (uprobes_) attach_uprobes(stop_descriptor);
  CLEW_TRY(open_spill());
  watch_execs();
  attach_ms_ = std::chrono::duration<double, std::milli>(Time::now() - started_).count();
  const collect::Losses now = losses();
  if (now.sites == 0 && ticks_.empty() && !now.refused.empty()) {
    const collect::RefusedSite& first = now.refused[0];
    const size_t more = now.refused.size() - 1;
    return fail(ErrorCode::Refused,
                fmt::format("no site could be taken: '{}' is refused ({}){}{}", first.function,
                            first.reason, more == 0 ? "" : fmt::format(", like {} more", more),
                            way_out(first, request_.uprobes)));
  }
  CLEW_TRY(begin());
  if (launched_) CLEW_TRY(launched_->resume());
  notices_.progress("");
  notices_.armed(armed_text(now));
  return {};
}

void Session::list_traced() {
  traced_.clear();
  for (const auto& tracee : tracees_) {
    tracee->set_index(static_cast<uint32_t>(traced_.size()));
    traced_.push_back(tracee.get());
  }
  kernel_begin_ = traced_.size();
  for (KernelTracee* const each : {kernel_.get(), uprobes_.get()}) {
    if (each == nullptr) continue;
    each->set_index(static_cast<uint32_t>(traced_.size()));
    traced_.push_back(each);
  }
  kernel_end_ = traced_.size();
}

// Behind the jumps, so that no uprobe comes where one of ours is. Sites that get none are refused,
// as they are without.
void Session::attach_uprobes(int stop_descriptor) {
  std::set<pid_t> pids;
  for (const auto& tracee : tracees_)
    pids.insert(tracee->pid());
  const auto attached = uprobes_->attach_in_processes(pids, lock_wait(stop_descriptor));
  if (attached) return;
  notices_.warning(fmt::format("no uprobes: {}", attached.error().message));
  without_uprobe_ = uprobes_->refused_sites();
  uprobes_.reset();
  list_traced();
}

inline_::LockWait Session::lock_wait(int stop_descriptor) {
  return {.stop_descriptor = stop_descriptor,
          .tell = [this](const std::string& text) { notices_.warning(text); },
          .leave_time = leave_time_};
}

// One of several that cannot be traced is left out.
Expected<void> Session::attach_all(int stop_descriptor) {
  std::optional<Error> first;
  std::vector<std::unique_ptr<Tracee>> attached;
  for (auto& tracee : tracees_) {
    tracee->set_wait(lock_wait(stop_descriptor));
    auto done = tracee->attach(plan_, lowered_, grouping_, request_.follow_forks);
    if (done) {
      attached.push_back(std::move(tracee));
      continue;
    }
    if (tracees_.size() == 1 || tracee->is_command()) return done;
    const std::string& reason = done.error().message;
    notices_.warning(fmt::format("process {} is left out: {}", tracee->pid(), reason));
    left_out_.push_back({.process = tracee->pid(), .reason = reason});
    first = first.value_or(done.error());
    tracee.reset();
  }
  if (first && attached.empty()) return tl::unexpected(*first);
  tracees_ = std::move(attached);
  list_traced();
  return {};
}

// What is armed one after the other begins at one moment, and ends so.
Expected<void> Session::begin() {
  has_window_ = traced_.size() > 1;
  if (has_window_) {
    for (const auto& tracee : tracees_)
      tracee->begin_window();
    begin_ticks_ = __rdtsc();
  }
  armed_ = Time::now();
  if (kernel_) CLEW_TRY(kernel_->start());
  if (uprobes_) CLEW_TRY(uprobes_->start());
  if (!has_window_ || lowered_.layout.generations != 2) return {};
  // Where the kernel has none (nohz_full), a store of a probe takes far less than what follows.
  (void)collect::barrier_everywhere();
  for (const auto& tracee : tracees_)
    tracee->settle_window();
  return {};
}

void Session::end() {
  if (!has_window_) return;
  end_ticks_ = __rdtsc();
  if (kernel_) kernel_->stop();
  if (uprobes_) uprobes_->stop();
  for (const auto& tracee : tracees_)
    tracee->end_window();
  find_open_calls();
  window_ms_ = std::chrono::duration<double, std::milli>(Time::now() - armed_).count();
}

void Session::watch_execs() {
  if (!request_.follow_forks || tracees_.empty()) return;
  std::vector<pid_t> pids;
  pids.reserve(tracees_.size());
  for (const auto& tracee : tracees_)
    pids.push_back(tracee->pid());
  execs_ = ExecWatch::of(pids);
  if (!execs_->is_told()) return;
  begun_.emplace(BegunPrograms::Session{.plan = plan_,
                                        .lowered = lowered_,
                                        .grouping = grouping_,
                                        .shared = shared_,
                                        .checks_memory = !request_.is_sure});
  for (const auto& tracee : tracees_)
    tracee->set_follows_exec();
}

void Session::follow_execs(int stop_descriptor) {
  if (!begun_) return;
  begun_->add(execs_->look());
  const size_t room = kProcessesMax - std::min(tracees_.size(), kProcessesMax);
  for (auto& tracee : begun_->arm_ready(lock_wait(stop_descriptor), room))
    add_tracee(std::move(tracee));
}

// Its own window begins now.
void Session::add_tracee(std::unique_ptr<Tracee> tracee) {
  tracee->set_index(static_cast<uint32_t>(traced_.size()));
  tracee->set_follows_exec();
  if (has_window_) tracee->begin_window();
  if (has_window_ && lowered_.layout.generations == 2) {
    (void)collect::barrier_everywhere();
    tracee->settle_window();
  }
  traced_.push_back(tracee.get());
  tracees_.push_back(std::move(tracee));
}

// Where one process is traced, when its probes are gone: then all that returned is counted. Others
// end at their window's end.
void Session::find_open_calls() {
  const uint64_t now = has_window_ ? end_ticks_ : __rdtsc();
  for (Traced* each : traced_) {
    std::vector<aggregate::Row> rows = each->take_open_calls(now);
    std::move(rows.begin(), rows.end(), std::back_inserter(open_rows_));
  }
}

void Session::push_open_rows() {
  for (const aggregate::Row& row : std::exchange(open_rows_, {})) {
    if (events_left_ == 0) return;
    --events_left_;
    sink_.row(row);
  }
}

std::string Session::armed_text(const collect::Losses& now) const {
  const auto counted = [](size_t count, const char* one, const char* many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
  };
  const std::string took = fmt::format("(armed in {:.0f} ms", attach_ms_);
  const size_t in_kernel = kernel_ ? kernel_->armed() : 0;
  if (tracees_.empty()) {
    const size_t processes = kernel_->scope().pids.size();
    return fmt::format(
        "tracing {} of the kernel, of {} {})", counted(in_kernel, "probe", "probes"),
        processes == 0 ? "all processes" : counted(processes, "process", "processes"), took);
  }
  const std::string beside =
      in_kernel == 0 ? "" : " and " + counted(in_kernel, "probe", "probes") + " of the kernel";
  std::string uprobes = now.uprobes.empty() ? uprobes_of_root(now.refused, request_.uprobes)
                                            : collect::describe_uprobes(now.uprobes);
  if (!uprobes.empty()) uprobes.insert(0, "; ");
  return fmt::format("tracing {} in {}{} {}, stopped for {:.1f} ms){}",
                     counted(now.sites - in_kernel, "site", "sites"),
                     counted(tracees_.size(), "process", "processes"), beside, took, now.stopped_ms,
                     uprobes);
}

// --- while it runs -----------------------------------------------------------------------------

void Session::start_windows() {
  const query::Query& query = plan_.query;
  if (query.for_ns) end_ = armed_ + Nanoseconds(*query.for_ns);
  if (query.every_ns) interval_end_ = armed_ + Nanoseconds(*query.every_ns);
  interval_begin_ns_ = monotonic_now_ns() + lowered_.clock.epoch_ns;
  if (query.for_events) events_left_ = *query.for_events;
  if (query.shape == query::Shape::Events && query.take) {
    events_left_ = std::min(events_left_, *query.take);
  }
  for (size_t i = 0; i < query.sources.size(); ++i) {
    if (query.sources[i].kind != SourceKind::Tick) continue;
    const Nanoseconds period(query.sources[i].period_ns);
    const auto source = static_cast<uint16_t>(i);
    ticks_.push_back({.source = source, .period = period, .next = armed_ + period});
  }
}

bool Session::has_events() const {
  return lowered_.form == plan::StateForm::Events || (kernel_ && kernel_->has_events()) ||
         (uprobes_ && uprobes_->has_events());
}

Time::time_point Session::next_wake() const {
  Time::time_point wake = Time::now() + kHousePeriod;
  if (has_events()) wake = Time::now() + kEventPeriod;
  if (lowered_.form == plan::StateForm::Table) wake = Time::now() + table_period_;
  if (lowered_.fuel_offset != 0) wake = std::min(wake, Time::now() + kFuelPeriod);
  if (lowered_.passed_dense) wake = Time::now() + kPassedPeriod;
  if (end_) wake = std::min(wake, *end_);
  if (interval_end_) wake = std::min(wake, *interval_end_);
  for (const HostTick& tick : ticks_) {
    wake = std::min(wake, tick.next);
  }
  return wake;
}

// Waits for the next thing to do; false when the session is to stop.
bool Session::wait(int stop_descriptor) {
  std::vector<pollfd> descriptors{{.fd = stop_descriptor, .events = POLLIN, .revents = 0}};
  for (const auto& tracee : tracees_) {
    if (tracee->gone()) continue;
    descriptors.push_back({.fd = tracee->pid_descriptor(), .events = POLLIN, .revents = 0});
  }
  if (kernel_ && tracees_.empty()) {
    for (const FileDescriptor& process : kernel_->pid_descriptors())
      descriptors.push_back({.fd = process.get(), .events = POLLIN, .revents = 0});
  }
  for (const int notices : execs_ ? execs_->descriptors() : std::vector<int>{})
    descriptors.push_back({.fd = notices, .events = POLLIN, .revents = 0});
  Nanoseconds left = std::max(Nanoseconds(0), Nanoseconds(next_wake() - Time::now()));
  if (begun_ && !begun_->empty()) left = std::min<Nanoseconds>(left, kLoaderPeriod);
  for (const auto& tracee : tracees_) {
    if (tracee->gone()) continue;
    // One process is waited for without delay; several take turns.
    const auto share = tracees_.size() == 1 ? kLoaderPeriod : std::chrono::milliseconds(0);
    if (tracee->loader_waits(share)) left = Nanoseconds(0);
    if (tracee->follows_modules()) left = std::min<Nanoseconds>(left, kLoaderPeriod - share);
  }
  const timespec timeout{.tv_sec = left.count() / 1'000'000'000,
                         .tv_nsec = left.count() % 1'000'000'000};
  (void)ppoll(descriptors.data(), descriptors.size(), &timeout, nullptr);
  return (descriptors[0].revents & POLLIN) == 0;
}

void Session::fire_ticks() {
  for (HostTick& tick : ticks_) {
    while (tick.next <= Time::now()) {
      fire(tick.source);
      tick.next += tick.period;
    }
  }
}

void Session::fire_all(SourceKind kind) {
  for (size_t i = 0; i < plan_.query.sources.size(); ++i) {
    if (plan_.query.sources[i].kind == kind) fire(static_cast<uint16_t>(i));
  }
}

// The rows of one of our own sources, which happens now.
void Session::fire(uint16_t source) {
  for (const aggregate::Row& row : traced_[0]->fire(source, monotonic_now_ns())) {
    if (events_left_ == 0) break;
    --events_left_;
    sink_.row(row);
  }
}

// Of queries that count, how many hits passed their filters.
uint64_t Session::passed() const {
  return std::accumulate(traced_.begin(), traced_.end(), uint64_t{0},
                         [](uint64_t sum, Traced* each) { return sum + each->passed(); });
}

bool Session::finished() {
  if (end_ && Time::now() >= *end_) return true;
  if (events_left_ == 0) return true;
  const bool counts = plan_.query.shape == query::Shape::Groups;
  if (counts && plan_.query.for_events && passed() >= events_left_) return true;
  if (begun_ && std::any_of(tracees_.begin(), tracees_.end(),
                            [](const auto& tracee) { return tracee->has_process(); })) {
    return false;  // What it runs now may begin programs that match.
  }
  // Processes that are gone have no more events in the kernel either, when it looks at them alone.
  return std::all_of(traced_.begin(), traced_.end(),
                     [](const Traced* each) { return each->gone(); });
}

void Session::drain_tables() {
  if (lowered_.form != plan::StateForm::Table) return;
  bool any = false;
  for (const auto& tracee : tracees_) {
    any = tracee->drain_tables() || any;
  }
  table_period_ = any ? kTablePeriodMin : std::min(2 * table_period_, kTablePeriodMax);
}

Recording Session::recording() {
  Recording recording;
  for (const query::Source& source : plan_.query.sources)
    recording.sources.push_back(query::print(source));
  recording.clock = lowered_.clock;
  recording.held = held_;
  recording.host = tracees_[0]->host();
  for (const auto& tracee : tracees_)
    recording.processes.push_back(tracee->description());
  return recording;
}

// A file that is read while it is written: what the consumer of the rows has not taken yet is
// there.
Expected<void> Session::open_spill() {
  if (request_.spill_path.empty()) return {};
  if (lowered_.form != plan::StateForm::Events) {
    return fail(ErrorCode::InvalidQuery,
                "--spill keeps events, and this query is counted in the probes; select the events "
                "themselves, and group them with --from");
  }
  if (plan_.query.including_open) {
    return fail(ErrorCode::InvalidQuery,
                "--spill keeps events of probes; calls that are open are none, so leave out "
                "'including open'");
  }
  held_ = CLEW_TRY(plan::held_by(plan_));
  spill_ = std::make_unique<collect::SpillWriter>(CLEW_TRY(collect::SpillWriter::create(
      request_.spill_path, {.event_words = lowered_.event_words, .note = note_of(recording())})));
  spilled_ = std::make_unique<collect::SpillReader>(
      CLEW_TRY(collect::SpillReader::open(request_.spill_path)));
  return {};
}

// Those of processes alone: the kernel begins and ends by itself.
collect::EventBatch Session::in_window(collect::EventBatch events) const {
  if (begin_ticks_ == 0) return events;
  collect::EventBatch kept;
  for (size_t i = 0; i < events.size(); ++i) {
    const collect::Event event = events.at(i);
    const uint32_t index = event.process >> kTraceeShift;
    const bool is_kernel = index >= kernel_begin_ && index < kernel_end_;
    if (is_kernel || (event.time >= begin_ticks_ && event.time <= end_ticks_)) kept.push(event);
  }
  return kept;
}

Expected<void> Session::push_spilled(bool all) {
  const bool counts = plan_.query.shape == query::Shape::Groups;
  while (events_left_ > 0 && (all || counts || sink_.ready())) {
    if (next_spilled_ < round_.batch.size()) {
      const collect::Event event = round_.batch.at(next_spilled_++);
      if (event.process >> kTraceeShift >= traced_.size()) {
        return fail(ErrorCode::Io, request_.spill_path + ": somebody else writes to this file");
      }
      push_event(event);
      continue;
    }
    std::optional<collect::SpillRound> round = CLEW_TRY(spilled_->next());
    if (!round) break;
    round_ = std::move(*round);
    next_spilled_ = 0;
  }
  return {};
}

Expected<void> Session::push_events(bool all) {
  if (!has_events()) return {};
  collect::EventBatch round;
  // Events of the kernel alone have its own times.
  const uint64_t start = tracees_.empty() ? static_cast<uint64_t>(monotonic_now_ns()) : __rdtsc();
  for (Traced* each : traced_) {
    each->read_events(round);
  }
  events_.add(round, start);
  const collect::EventBatch ready = in_window(all ? events_.take_all() : events_.take_ready());
  if (spill_ != nullptr) {
    CLEW_TRY(spill_->write(ready, start));
    return push_spilled(all);
  }
  for (size_t i = 0; i < ready.size(); ++i) {
    push_event(ready.at(i));
  }
  return {};
}

void Session::push_event(const collect::Event& event) {
  for (const aggregate::Row& row : traced_[event.process >> kTraceeShift]->take_event(event)) {
    if (events_left_ == 0) return;
    --events_left_;
    sink_.row(row);
  }
}

Expected<aggregate::Table> Session::merged(bool interval) {
  const auto part = [interval](Traced& traced) {
    return interval ? traced.interval() : traced.total();
  };
  aggregate::Table table = CLEW_TRY(part(*traced_[0]));
  for (Traced* each : std::span(traced_).subspan(1)) {
    const aggregate::Table some = CLEW_TRY(part(*each));
    CLEW_TRY(table.merge(some));
  }
  return table;
}

void Session::push_rows(const aggregate::Table& table) {
  for (const aggregate::Row& row : traced_[0]->root().rows(table)) {
    sink_.row(row);
  }
}

Expected<void> Session::end_interval(bool partial) {
  if (plan_.query.shape == query::Shape::Groups) push_rows(CLEW_TRY(merged(true)));
  const int64_t now_ns = monotonic_now_ns() + lowered_.clock.epoch_ns;
  sink_.end_interval({.number = ++intervals_,
                      .partial = partial,
                      .begin_ns = std::exchange(interval_begin_ns_, now_ns),
                      .end_ns = now_ns});
  return {};
}

void Session::disarm_spinning() {
  for (Traced* each : traced_) {
    for (const collect::DisarmedProbe& disarmed : each->disarm_spinning()) {
      notices_.warning(collect::describe(disarmed));
      sink_.disarmed(disarmed);
    }
  }
}

void Session::keep_house() {
  if (Time::now() - house_ < kHousePeriod) return;
  house_ = Time::now();
  for (Traced* each : traced_)
    each->keep_house();
}

bool Session::interval_is_over() const {
  return interval_end_ && Time::now() >= *interval_end_;
}

// One of several whose new modules cannot be looked at goes on with the old ones.
Expected<void> Session::follow_modules() {
  for (const auto& tracee : tracees_) {
    Expected<void> followed = tracee->follow_modules(plan_, grouping_);
    if (followed) continue;
    if (tracees_.size() == 1) return followed;
    tracee->note_lost(fmt::format("new modules of process {} are not traced: {}", tracee->pid(),
                                  followed.error().message));
  }
  return {};
}

Expected<void> Session::answer(int stop_descriptor) {
  start_windows();
  const bool groups = plan_.query.shape == query::Shape::Groups;
  sink_.begin(traced_[0]->root().columns(),
              groups ? output::RowMode::Table : output::RowMode::Stream);
  fire_all(SourceKind::Begin);
  while (!finished()) {
    if (!wait(stop_descriptor)) break;
    CLEW_TRY(follow_modules());
    drain_tables();
    CLEW_TRY(push_events(false));
    fire_ticks();
    disarm_spinning();
    follow_execs(stop_descriptor);
    keep_house();
    // The one that ends with the session is closed there, whole.
    const bool is_last = end_ && interval_end_ && *interval_end_ >= *end_;
    if (interval_is_over() && !is_last) {
      interval_end_ = *interval_end_ + Nanoseconds(plan_.query.every_ns.value_or(0));
      CLEW_TRY(end_interval(false));
    }
  }
  return {};
}

// --- the end -----------------------------------------------------------------------------------

Expected<Outcome> Session::close(int stop_descriptor) {
  Outcome outcome;
  const bool partial = !interval_is_over();
  end();
  for (Traced* each : traced_) {
    note(each->detach());
  }
  if (!has_window_) find_open_calls();
  CLEW_TRY(push_events(true));
  push_open_rows();
  if (spill_ != nullptr) {
    Recording whole = recording();
    whole.losses = losses();
    CLEW_TRY(spill_->finish(note_of(whole)));
  }
  fire_all(SourceKind::End);
  if (plan_.query.every_ns) {
    CLEW_TRY(end_interval(partial));
  } else if (plan_.query.shape == query::Shape::Groups) {
    push_rows(CLEW_TRY(merged(false)));
  }
  sink_.finish(losses());
  if (!fault_) return tl::unexpected(fault_.error());
  if (launched_) {
    outcome.command = launched_->pid();
    // A process that has no memory any more is about to end.
    const bool has_ended = tracees_.empty() ? kernel_->gone() : has_process_ended(*outcome.command);
    constexpr std::chrono::milliseconds kEndTimeout{2000};
    const bool is_told = !has_ended && pass_on_signal(stop_descriptor, {&*outcome.command, 1});
    outcome.command_status =
        launched_->exit_status(has_ended || is_told ? kEndTimeout : std::chrono::milliseconds{0});
  }
  return outcome;
}

bool Session::has_process_ended(pid_t pid) const {
  return std::any_of(tracees_.begin(), tracees_.end(), [pid](const auto& tracee) {
    return tracee->pid() == pid && (tracee->has_ended() || !tracee->has_process());
  });
}

// The answer comes first: what went wrong is a loss beside it, and the error after it.
void Session::note(Expected<void> done) {
  if (done) return;
  lost_.push_back(done.error().message);
  if (fault_) fault_ = std::move(done);
}

collect::Losses Session::losses() {
  collect::Losses all;
  for (const auto& tracee : tracees_)
    all.merge(tracee->losses());
  for (KernelTracee* const each : {kernel_.get(), uprobes_.get()}) {
    if (each == nullptr) continue;
    collect::Losses of_kernel = each->losses();
    // Each child that hits a probe in a process is among those that the kernel's programs count.
    const auto forks = of_kernel.missed.find(collect::kMissedForks);
    if (forks != of_kernel.missed.end()) all.missed.erase(forks->first);
    all.merge(of_kernel);
  }
  all.refused.insert(all.refused.end(), without_uprobe_.begin(), without_uprobe_.end());
  if (execs_) {
    const std::vector<std::string> told = execs_->told();
    all.lost.insert(all.lost.end(), told.begin(), told.end());
  }
  if (begun_) {
    const std::vector<std::string> told = begun_->told();
    all.lost.insert(all.lost.end(), told.begin(), told.end());
  }
  all.attach_ms = attach_ms_;
  all.window_ms = window_ms_;
  all.left_out.insert(all.left_out.end(), left_out_.begin(), left_out_.end());
  all.lost.insert(all.lost.end(), lost_.begin(), lost_.end());
  return all;
}

}  // namespace

Expected<Outcome> run(const Request& request, int stop_descriptor, output::RowSink& sink,
                      Notices& notices) {
  Session session(request, CLEW_TRY(compile(request, notices)), sink, notices);
  CLEW_TRY(session.arm(stop_descriptor));
  session.note(session.answer(stop_descriptor));
  return session.close(stop_descriptor);
}

}  // namespace clew::engine
