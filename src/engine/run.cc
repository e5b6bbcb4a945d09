// SPDX-License-Identifier: Apache-2.0
#include "engine/run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "answer/columns.h"
#include "answer/join_tally.h"
#include "base/clock_ns.h"
#include "base/log.h"
#include "engine/causes.h"
#include "engine/compile.h"
#include "engine/first_process.h"
#include "engine/other_sessions.h"
#include "engine/processes.h"
#include "engine/stop_signal.h"
#include "engine/uprobe_sites.h"
#include "ledger/session.h"
#include "plan/held.h"
#include "query/print.h"
#include "query/query.h"
#include "session/event_flow.h"
#include "session/recording.h"
#include "session/request_recorder.h"
#include "session/session.h"
#include "target/socket_numbers.h"

namespace clew::engine {
namespace {

using Time = std::chrono::steady_clock;

// One query over live processes and the kernel. The functions are called in the order of their
// declaration.
class Run {
 public:
  Run(const Request& request, Compiled compiled, output::RowSink& sink, Notices& notices);

  [[nodiscard]] ledger::Scope scope() const;
  Expected<void> arm(int stop_descriptor);
  void answer(int stop_descriptor) { session_->note(session_->answer(stop_descriptor)); }
  [[nodiscard]] ledger::Counts counts(bool is_stopped);
  // Removes the probes and gives the rest of the answer. Errors: what went wrong since arm().
  Expected<Outcome> close(int stop_descriptor);

 private:
  Expected<void> attach_uprobes(const inline_::LockWait& wait);
  Expected<void> open_spill();
  void give_graph();
  void give_account();
  void make_session();
  [[nodiscard]] Expected<void> check_governed() const;
  [[nodiscard]] Expected<void> check_any_site(const collect::Losses& now) const;
  void warn_of_holders(const collect::Losses& now);
  [[nodiscard]] std::string armed_text(const collect::Losses& now) const;
  [[nodiscard]] std::string traced_text(const collect::Losses& now) const;
  [[nodiscard]] session::Recording recording();
  [[nodiscard]] Outcome end_of_command(int stop_descriptor);

  const Request& request_;
  output::RowSink& sink_;
  Notices& notices_;
  Compiled compiled_;
  session::Numbers numbers_;
  session::EventFlow flow_;
  std::vector<collect::RefusedSite> refused_;  // That no source knows of.
  double attach_ms_ = 0;
  std::vector<plan::HeldCapture> held_;  // With Request::spill_path.
  // After the kernel's, so that processes are left first: jumps in them are what must not stay.
  std::unique_ptr<Processes> processes_;  // Null when the kernel's programs serve all sources.
  std::optional<session::RequestRecorder> recorder_;
  std::optional<answer::JoinTally> tally_;
  std::optional<session::Session> session_;
};

Run::Run(const Request& request, Compiled compiled, output::RowSink& sink, Notices& notices)
    : request_(request),
      sink_(sink),
      notices_(notices),
      compiled_(std::move(compiled)),
      refused_(compiled_.refused) {
  if (compiled_.tracees.empty()) return;
  processes_ = std::make_unique<Processes>(
      ProcessesInput{.plan = compiled_.plan,
                     .lowered = compiled_.lowered,
                     .grouping = compiled_.grouping,
                     .shared = compiled_.shared,
                     .numbers = numbers_,
                     .follow_forks = request.follow_forks,
                     .checks_memory = !request.is_sure,
                     .later = compiled_.later,
                     .progress = [this](const std::string& text) { notices_.progress(text); },
                     .max_overhead = request.max_overhead},
      std::move(compiled_.tracees));
}

ledger::Scope Run::scope() const {
  std::set<pid_t> pids = processes_ ? processes_->pids() : std::set<pid_t>();
  for (const KernelTracee* const each : {compiled_.kernel.get(), compiled_.uprobes.get()})
    if (each != nullptr) pids.insert(each->scope().pids.begin(), each->scope().pids.end());
  return {.processes = {pids.begin(), pids.end()},
          .is_kernel = compiled_.kernel != nullptr,
          .is_new = request_.follow_forks || compiled_.launched || compiled_.later,
          .is_judged_one_by_one = processes_ != nullptr};
}

Expected<void> Run::arm(int stop_descriptor) {
  const inline_::LockWait wait{
      .stop_descriptor = stop_descriptor,
      .tell = [this](const std::string& text) { notices_.warning(text); },
      .leave_time = std::make_shared<inline_::LeaveTime>(inline_::LeaveTime::kUsual)};
  CLEW_TRY(check_governed());
  notices_.progress("attaching");
  if (processes_) CLEW_TRY(processes_->check_room());
  if (const std::string takes = processes_ ? processes_->what_it_takes() : ""; !takes.empty())
    notices_.warning(takes);
  if (processes_) CLEW_TRY(processes_->attach(wait));
  if (compiled_.kernel) CLEW_TRY(compiled_.kernel->attach());
  if (compiled_.uprobes) CLEW_TRY(attach_uprobes(wait));
  CLEW_TRY(open_spill());
  attach_ms_ = std::chrono::duration<double, std::milli>(Time::now() - compiled_.started).count();
  make_session();
  const collect::Losses now = session_->losses();
  CLEW_TRY(check_any_site(now));
  warn_of_holders(now);
  if (compiled_.joined && processes_) {
    for (const auto& tracee : processes_->tracees())
      CLEW_TRY(check_refused(*compiled_.joined, *tracee, now.refused));
  }
  CLEW_TRY(session_->begin());
  log_step(0, "the session begins: {}", traced_text(now));
  if (compiled_.launched) CLEW_TRY(compiled_.launched->resume());
  notices_.progress("");
  notices_.armed(armed_text(now));
  return {};
}

// Behind the jumps, so that no uprobe comes where one of ours is. Sites that get none are refused,
// as they are without.
Expected<void> Run::attach_uprobes(const inline_::LockWait& wait) {
  const std::vector<pid_t>& pids = compiled_.uprobes->scope().pids;
  const std::set<pid_t> wanted =
      processes_ ? processes_->pids() : std::set<pid_t>(pids.begin(), pids.end());
  auto attached = compiled_.uprobes->attach_in_processes(wanted, wait);
  if (attached || !processes_) return attached;
  notices_.warning(fmt::format("no uprobes: {}", attached.error().message));
  refused_ = compiled_.uprobes->refused_sites();
  compiled_.uprobes.reset();
  return {};
}

// What the consumer of the rows has not taken yet is in the file.
Expected<void> Run::open_spill() {
  if (request_.spill_path.empty()) return {};
  if (compiled_.lowered.form != plan::StateForm::Events) {
    return fail(ErrorCode::InvalidQuery,
                "--spill keeps events, and this query is counted in the probes; select the events "
                "themselves, and group them with --from");
  }
  if (compiled_.plan.query.including_open) {
    return fail(ErrorCode::InvalidQuery,
                "--spill keeps events of probes; calls that are open are none, so leave out "
                "'including open'");
  }
  held_ = CLEW_TRY(plan::held_by(compiled_.plan));
  return flow_.keep_in(request_.spill_path, {.event_words = compiled_.lowered.event_words,
                                             .note = session::note_of(recording())});
}

session::Recording Run::recording() {
  session::Recording recording;
  for (const query::Source& source : compiled_.plan.query.sources)
    recording.sources.push_back(query::print(source));
  recording.clock = compiled_.lowered.clock;
  recording.held = held_;
  recording.host = processes_->tracees()[0]->host();
  recording.stacks = compiled_.shared.stacks->kept();
  for (const auto& tracee : processes_->tracees())
    recording.processes.push_back(tracee->description());
  return recording;
}

void Run::make_session() {
  const bool joins_events = compiled_.joined && !compiled_.in_place && !compiled_.joins_elsewhere;
  if (request_.graph && joins_events) recorder_.emplace(*compiled_.joined, request_.graph->choice);
  if (request_.account && joins_events) tally_.emplace(*compiled_.joined);
  answer::JoinObserver* observer = recorder_ ? &*recorder_ : nullptr;
  if (tally_) observer = &*tally_;
  session::Input input{
      .plan = compiled_.plan,
      .sources = {},
      .numbers = numbers_,
      .sink = sink_,
      .flow = flow_,
      .epoch_ns = compiled_.lowered.clock.epoch_ns,
      .clock = compiled_.lowered.clock,
      .beside = {.refused = refused_, .left_out = compiled_.left_out, .attach_ms = attach_ms_},
      .joined = joins_events ? &*compiled_.joined : nullptr,
      .profiles = compiled_.programs.get(),
      .observer = observer,
      .socket_numbers =
          joins_events && plan::counts_bytes(*compiled_.joined)
              ? std::function([] { return causal::SocketNumbers{target::socket_numbers()}; })
              : std::function<causal::SocketNumbers()>(),
      .panes = request_.panes,
      .pane_clock = request_.pane_clock,
      .events = compiled_.events,
      .event_clock = [] { return clock_ns(CLOCK_MONOTONIC); },
      .warn = [this](std::string_view text) { notices_.warning(text); }};
  if (request_.idle_ns) {
    input.idle = session::IdleLimit{.time = std::chrono::nanoseconds(*request_.idle_ns),
                                    .is_unread = request_.is_unread};
  }
  input.beside.lost = compiled_.lost;
  if (!processes_ && compiled_.uprobes)
    input.beside.processes = compiled_.uprobes->scope().pids.size();
  if (processes_) input.sources.push_back(processes_.get());
  for (KernelTracee* const each : {compiled_.kernel.get(), compiled_.uprobes.get()}) {
    if (each == nullptr) continue;
    each->set_number(numbers_.next(*each));
    input.sources.push_back(each);
  }
  // What is answered in place has the same window, and says it, as what is answered from events.
  input.has_window = numbers_.size() > 1 || compiled_.in_place || compiled_.later;
  session_.emplace(std::move(input));
}

// What --max-overhead cannot measure, or cannot take out without making the rest wrong.
Expected<void> Run::check_governed() const {
  if (!request_.max_overhead) return {};
  const auto refuse = [](const std::string& why) {
    return fail(ErrorCode::InvalidQuery, "--max-overhead " + why);
  };
  if (compiled_.joined || compiled_.in_place) {
    return refuse(
        "does not go with joins and outstanding(): without one of its probes the others would be "
        "joined wrongly, not only be fewer");
  }
  if (compiled_.kernel) {
    return refuse(
        "governs probes inside processes, and sources of this query are in the kernel, whose time "
        "it cannot tell from the process's own");
  }
  if (!compiled_.uprobes) return {};
  return refuse(
      "governs probes inside processes, and this query has sites by uprobe, whose time is the "
      "kernel's: --no-uprobes leaves them out");
}

Expected<void> Run::check_any_site(const collect::Losses& now) const {
  if (now.sites != 0 || now.refused.empty()) return {};
  const collect::RefusedSite& first = now.refused[0];
  const size_t more = now.refused.size() - 1;
  const std::string holders =
      processes_ ? holders_of(now.refused, processes_->pids()) : std::string();
  return fail(ErrorCode::Refused,
              fmt::format("no site could be taken: '{}' is refused ({}){}{}{}", first.function,
                          first.reason, more == 0 ? "" : fmt::format(", like {} more", more),
                          holders.empty() ? "" : "; the process is traced by " + holders,
                          way_out(first, compiled_.plan.query, request_.uprobes)));
}

// Of the rest there are rows, and nobody would look for the cause.
void Run::warn_of_holders(const collect::Losses& now) {
  const std::string holders =
      processes_ ? holders_of(now.refused, processes_->pids()) : std::string();
  if (holders.empty()) return;
  notices_.warning(
      fmt::format("sites are refused (window-in-use) while the process is traced by {}", holders));
}

std::string with_count(size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string Run::traced_text(const collect::Losses& now) const {
  const size_t in_kernel = compiled_.kernel ? compiled_.kernel->armed() : 0;
  const std::string of_kernel = with_count(in_kernel, "probe", "probes") + " of the kernel";
  if (!processes_ && !compiled_.uprobes) {
    const size_t processes = compiled_.kernel->scope().pids.size();
    return fmt::format(
        "{}, of {}", of_kernel,
        processes == 0 ? "all processes" : with_count(processes, "process", "processes"));
  }
  const size_t processes =
      processes_ ? processes_->tracees().size() : compiled_.uprobes->scope().pids.size();
  return fmt::format("{} in {}{}{}", with_count(now.sites - in_kernel, "site", "sites"),
                     with_count(processes, "process", "processes"),
                     compiled_.later ? " and in those that come" : "",
                     in_kernel == 0 ? "" : " and " + of_kernel);
}

std::vector<CopiedReport> copied_of(const Processes* processes) {
  std::vector<CopiedReport> reports;
  if (processes == nullptr) return reports;
  for (const auto& tracee : processes->tracees())
    reports.insert(reports.end(), tracee->copied().begin(), tracee->copied().end());
  return reports;
}

std::string Run::armed_text(const collect::Losses& now) const {
  std::string text = fmt::format("tracing {} (armed in {:.0f} ms", traced_text(now), attach_ms_);
  if (processes_) text += fmt::format(", stopped for {:.1f} ms", now.stopped_ms);
  size_t copied = 0;
  for (const CopiedReport& report : copied_of(processes_.get()))
    copied += report.copied;
  if (copied != 0) text += fmt::format("; {} functions run on copies", copied);
  const std::string uprobes =
      now.uprobes.empty() ? uprobes_of_root(now.refused, compiled_.plan.query, request_.uprobes)
                          : collect::describe_uprobes(now.uprobes);
  return fmt::format("{}){}{}", text, uprobes.empty() ? "" : "; ", uprobes);
}

Expected<Outcome> Run::close(int stop_descriptor) {
  log_step(0, "the session ends");
  CLEW_TRY(session_->stop());
  if (flow_.is_kept()) {
    session::Recording whole = recording();
    whole.losses = session_->losses_of_events();
    CLEW_TRY(flow_.finish_file([&whole](uint64_t left_out) {
      if (left_out != 0) whole.losses.dropped[std::string(collect::kDroppedNoRoom)] = left_out;
      return session::note_of(whole);
    }));
    if (const uint64_t left_out = whole.stacks.left_out(); left_out != 0) {
      notices_.warning(fmt::format("{} frames of stacks have no names in {}, only addresses",
                                   left_out, request_.spill_path));
    }
  }
  const Expected<void> finished = session_->finish();
  give_graph();
  give_account();
  CLEW_TRY(finished);
  log_step(0, "answered");
  return compiled_.launched ? end_of_command(stop_descriptor) : Outcome{};
}

ledger::Counts Run::counts(bool is_stopped) {
  const collect::Losses losses = session_->losses();
  const auto sum_of = [](const collect::Causes& causes) {
    return std::accumulate(causes.begin(), causes.end(), uint64_t{0},
                           [](uint64_t sum, const auto& cause) { return sum + cause.second; });
  };
  ledger::Counts counts{
      .is_stopped = is_stopped, .missed = sum_of(losses.missed), .dropped = sum_of(losses.dropped)};
  if (request_.panes == nullptr) counts.rows = session_->rows_given();
  return counts;
}

void Run::give_graph() {
  if (recorder_) request_.graph->take(recorder_->finish(compiled_.lowered.clock.epoch_ns));
}

void Run::give_account() {
  if (!request_.account) return;
  const collect::Losses losses = session_->losses();
  const plan::Joined& joined = *compiled_.joined;
  request_.account(tally_ ? account_of(joined, *tally_)
                          : account_in_place(joined, compiled_.plan.contexts, losses),
                   losses);
}

Outcome Run::end_of_command(int stop_descriptor) {
  constexpr std::chrono::milliseconds kEndTimeout{2000};
  const pid_t command = compiled_.launched->pid();
  // A process that has no memory any more is about to end.
  const bool has_ended = processes_          ? processes_->has_ended(command)
                         : compiled_.uprobes ? compiled_.uprobes->gone()
                                             : compiled_.kernel->gone();
  const bool is_told = !has_ended && pass_on_signal(stop_descriptor, {&command, 1});
  return {.command = command,
          .command_status = compiled_.launched->exit_status(
              has_ended || is_told ? kEndTimeout : std::chrono::milliseconds{0})};
}

struct Attempt {
  ledger::Session told;
  bool may_come_again = false;  // The process that was waited for was over before it was armed.
};

Expected<Outcome> run_told(const Request& request, int stop_descriptor, output::RowSink& sink,
                           Notices& notices, Attempt& attempt) {
  ledger::Session& told = attempt.told;
  Compiled compiled = CLEW_TRY(compile(request, notices, stop_descriptor));
  if (request.accept_query) CLEW_TRY(request.accept_query(compiled.query));
  const query::Query& answered =
      compiled.joined && !compiled.in_place ? compiled.joined->stages[0].rest : compiled.plan.query;
  if (request.accept) CLEW_TRY(request.accept(answer::columns_of(answered)));
  const bool has_waited = compiled.has_waited;
  Run run(request, std::move(compiled), sink, notices);
  const ledger::Scope scope = run.scope();
  CLEW_TRY(told.begin(scope));
  if (auto armed = run.arm(stop_descriptor); !armed) {
    attempt.may_come_again = has_waited && is_any_over(scope.processes);
    return tl::unexpected(std::move(armed).error());
  }
  told.set_tracing();
  run.answer(stop_descriptor);
  const bool is_stopped = has_stop_signal(stop_descriptor);
  Expected<Outcome> outcome = run.close(stop_descriptor);
  told.count(run.counts(is_stopped));
  return outcome;
}

}  // namespace

Expected<Outcome> run(const Request& request, int stop_descriptor, output::RowSink& sink,
                      Notices& notices) {
  while (true) {
    Attempt attempt{.told = CLEW_TRY(ledger::Session::open(
                        {.text = request.text.text,
                         .text_name = request.text.name,
                         .processes = request.processes.pids,
                         .warn = [&notices](std::string_view text) { notices.warning(text); }}))};
    Expected<Outcome> outcome = run_told(request, stop_descriptor, sink, notices, attempt);
    attempt.told.end(outcome);
    if (!attempt.may_come_again) return outcome;
  }
}

}  // namespace clew::engine
