// SPDX-License-Identifier: Apache-2.0
#include "engine/run.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <span>

#include <fmt/format.h>
#include <poll.h>
#include <time.h>
#include <x86intrin.h>

#include "collect/event_merge.h"
#include "collect/spill.h"
#include "engine/compile.h"
#include "engine/memory_need.h"
#include "engine/recording.h"
#include "engine/stop_signal.h"
#include "engine/tracee.h"
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
        tracees_(std::move(compiled.tracees)),
        kernel_(std::move(compiled.kernel)),
        plan_(std::move(compiled.plan)),
        lowered_(std::move(compiled.lowered)),
        grouping_(std::move(compiled.grouping)),
        started_(compiled.started) {
    for (const auto& tracee : tracees_)
      traced_.push_back(tracee.get());
    if (kernel_) traced_.push_back(kernel_.get());
  }

  Expected<void> check_room() const;
  Expected<void> arm();
  Expected<void> answer(int stop_descriptor);
  // Keeps the first fault for close().
  void note(Expected<void> done);
  // Removes the probes and gives the rest of the answer. Errors: what was noted.
  Expected<Outcome> close(int stop_descriptor);

 private:
  [[nodiscard]] std::string armed_text(const collect::Losses& now) const;
  [[nodiscard]] bool has_events() const;
  void start_windows();
  [[nodiscard]] Time::time_point next_wake() const;
  [[nodiscard]] bool wait(int stop_descriptor);
  void fire_ticks();
  void fire_all(SourceKind kind);
  void fire(uint16_t source);
  void disarm_spinning();
  void keep_house();
  [[nodiscard]] bool finished();
  Expected<void> end_interval(bool partial);
  [[nodiscard]] bool interval_is_over() const;
  void drain_tables();
  Expected<void> open_spill();
  Expected<void> push_events(bool all);
  Expected<void> push_spilled(bool all);
  [[nodiscard]] Recording recording();
  void push_event(const collect::Event& event);
  Expected<aggregate::Table> merged(bool interval);
  void push_rows(const aggregate::Table& table);
  collect::Losses losses();

  const Request& request_;
  output::RowSink& sink_;
  Notices& notices_;
  std::optional<inline_::Launched> launched_;
  std::vector<std::unique_ptr<Tracee>> tracees_;
  std::unique_ptr<KernelTracee> kernel_;
  std::vector<Traced*> traced_;  // The tracees, then the kernel.
  plan::Plan plan_;
  plan::Lowered lowered_;
  plan::Grouping grouping_;
  Time::time_point started_;
  double attach_ms_ = 0;
  Time::time_point armed_;
  std::optional<Time::time_point> end_;
  std::optional<Time::time_point> interval_end_;
  Time::time_point house_ = Time::now();
  std::chrono::milliseconds table_period_ = kTablePeriodMax;
  uint64_t intervals_ = 0;
  uint64_t events_left_ = UINT64_MAX;
  Expected<void> fault_;
  std::vector<std::string> lost_;
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

Expected<void> Session::arm() {
  notices_.progress("attaching");
  CLEW_TRY(check_room());
  for (const auto& tracee : tracees_) {
    CLEW_TRY(tracee->attach(plan_, lowered_, grouping_, request_.follow_forks));
  }
  if (kernel_) CLEW_TRY(kernel_->attach());
  CLEW_TRY(open_spill());
  armed_ = Time::now();
  attach_ms_ = std::chrono::duration<double, std::milli>(armed_ - started_).count();
  const collect::Losses now = losses();
  if (now.sites == 0 && ticks_.empty() && !now.refused.empty()) {
    const collect::RefusedSite& first = now.refused[0];
    const size_t more = now.refused.size() - 1;
    return fail(
        ErrorCode::Refused,
        fmt::format("no site could be taken: '{}' is refused ({}){}{}", first.function,
                    first.reason, more == 0 ? "" : fmt::format(", like {} more", more),
                    first.kind == "exit" ? "; its entry may be possible: clew list --sites" : ""));
  }
  if (kernel_) CLEW_TRY(kernel_->start());
  if (launched_) CLEW_TRY(launched_->resume());
  notices_.progress("");
  notices_.armed(armed_text(now));
  return {};
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
  return fmt::format("tracing {} in {}{} {}, stopped for {:.1f} ms)",
                     counted(now.sites - in_kernel, "site", "sites"),
                     counted(tracees_.size(), "process", "processes"), beside, took,
                     now.stopped_ms);
}

// --- while it runs -----------------------------------------------------------------------------

void Session::start_windows() {
  const query::Query& query = plan_.query;
  if (query.for_ns) end_ = armed_ + Nanoseconds(*query.for_ns);
  if (query.every_ns) interval_end_ = armed_ + Nanoseconds(*query.every_ns);
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
  return lowered_.form == plan::StateForm::Events || (kernel_ && kernel_->has_events());
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
  Nanoseconds left = std::max(Nanoseconds(0), Nanoseconds(next_wake() - Time::now()));
  for (const auto& tracee : tracees_) {
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

bool Session::finished() {
  if (end_ && Time::now() >= *end_) return true;
  if (events_left_ == 0) return true;
  if (lowered_.passed_dense) {
    const uint64_t passed =
        std::accumulate(tracees_.begin(), tracees_.end(), uint64_t{0},
                        [](uint64_t sum, const auto& tracee) { return sum + tracee->passed(); });
    if (passed >= events_left_) return true;
  }
  const bool counts = plan_.query.shape == query::Shape::Groups;
  if (kernel_ && counts && plan_.query.for_events && kernel_->passed() >= events_left_) return true;
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
  recording.event_words = lowered_.event_words;
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
  held_ = CLEW_TRY(plan::held_by(plan_));
  spill_ = std::make_unique<collect::SpillWriter>(CLEW_TRY(collect::SpillWriter::create(
      request_.spill_path, {.event_words = lowered_.event_words, .note = note_of(recording())})));
  spilled_ = std::make_unique<collect::SpillReader>(
      CLEW_TRY(collect::SpillReader::open(request_.spill_path)));
  return {};
}

Expected<void> Session::push_spilled(bool all) {
  const bool counts = plan_.query.shape == query::Shape::Groups;
  while (events_left_ > 0 && (all || counts || sink_.ready())) {
    if (next_spilled_ < round_.batch.size()) {
      push_event(round_.batch.at(next_spilled_++));
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
  const collect::EventBatch ready = all ? events_.take_all() : events_.take_ready();
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
  sink_.end_interval({.number = ++intervals_, .partial = partial});
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

Expected<void> Session::answer(int stop_descriptor) {
  start_windows();
  const bool groups = plan_.query.shape == query::Shape::Groups;
  sink_.begin(traced_[0]->root().columns(),
              groups ? output::RowMode::Table : output::RowMode::Stream);
  fire_all(SourceKind::Begin);
  while (!finished()) {
    if (!wait(stop_descriptor)) break;
    for (const auto& tracee : tracees_) {
      CLEW_TRY(tracee->follow_modules(plan_, grouping_));
    }
    drain_tables();
    CLEW_TRY(push_events(false));
    fire_ticks();
    disarm_spinning();
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
  for (Traced* each : traced_) {
    note(each->detach());
  }
  CLEW_TRY(push_events(true));
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
    const bool has_ended = tracees_.empty() ? kernel_->gone() : tracees_[0]->has_ended();
    constexpr std::chrono::milliseconds kEndTimeout{2000};
    const bool is_told = !has_ended && pass_on_signal(stop_descriptor, {&*outcome.command, 1});
    outcome.command_status =
        launched_->exit_status(has_ended || is_told ? kEndTimeout : std::chrono::milliseconds{0});
  }
  return outcome;
}

// The answer comes first: what went wrong is a loss beside it, and the error after it.
void Session::note(Expected<void> done) {
  if (done) return;
  lost_.push_back(done.error().message);
  if (fault_) fault_ = std::move(done);
}

collect::Losses Session::losses() {
  collect::Losses all;
  for (Traced* each : traced_) {
    all.merge(each->losses());
  }
  all.attach_ms = attach_ms_;
  all.lost.insert(all.lost.end(), lost_.begin(), lost_.end());
  return all;
}

}  // namespace

Expected<Outcome> run(const Request& request, int stop_descriptor, output::RowSink& sink,
                      Notices& notices) {
  Session session(request, CLEW_TRY(compile(request, notices)), sink, notices);
  CLEW_TRY(session.arm());
  session.note(session.answer(stop_descriptor));
  return session.close(stop_descriptor);
}

}  // namespace clew::engine
