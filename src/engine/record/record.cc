// SPDX-License-Identifier: Apache-2.0
#include "engine/record/record.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/epoll.h>

#include "base/clock_ns.h"
#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "base/log.h"
#include "engine/open_files.h"
#include "engine/record/conditions.h"
#include "engine/record/heartbeats.h"
#include "engine/record/leaving.h"
#include "engine/record/module_files.h"
#include "engine/record/recorded_process.h"
#include "engine/record/snap_requests.h"
#include "engine/record/snap_writer.h"
#include "engine/record/standstill.h"
#include "engine/record/thread_status.h"
#include "engine/record/watch.h"
#include "inline/attachment.h"
#include "inline/loader.h"
#include "ledger/session.h"
#include "recorder/save_snap.h"
#include "recorder/snap.h"
#include "target/process.h"

namespace clew::engine {

namespace {

using recorder::file_of;

// What is not recorded is told once, and no more of them than a user reads.
class LeftTold {
 public:
  explicit LeftTold(Notices& notices) : notices_(notices) {}

  void tell(const std::string& path, const Error& reason) {
    constexpr size_t kToldMax = 20;
    if (told_.size() > kToldMax || !told_.insert(path).second) return;
    if (told_.size() > kToldMax) return notices_.warning("others are not recorded, either");
    notices_.warning(fmt::format("{} is not recorded: {}", file_of(path), reason.message));
  }

 private:
  Notices& notices_;
  std::set<std::string> told_;
};

// Whose rights its caller does not have.
Expected<void> check_privileges(pid_t pid) {
  const auto values = inline_::read_auxiliary(pid);
  if (!values || !values->is_secure) return {};
  return fail(ErrorCode::Refused, "it runs with rights that its caller does not have [setuid]");
}

class Recorder final : public WatchListener {
 public:
  Recorder(const RecordRequest& request, Notices& notices, ledger::Session& session)
      : request_(request),
        notices_(notices),
        session_(session),
        files_(request.each_iteration ? recorder::Loops::Each : recorder::Loops::Once,
               request.by_guards ? recorder::FrontEnd::Guards : recorder::FrontEnd::Copies,
               request.cache_directory),
        snaps_(request.directory, request.limits, notices),
        conditions_(request.conditions, notices),
        heartbeats_(request.heartbeat_ns),
        told_(notices) {}

  Expected<int> run() {
    CLEW_TRY(recorder::check_snap_folder(request_.directory));
    CLEW_TRY(conditions_.check());
    inline_::Launched launched = CLEW_TRY(
        inline_::Launched::start({.command = request_.command, .failed_with = &failed_with_}));
    command_ = launched.pid();
    CLEW_TRY(session_.begin({.processes = {command_}, .is_new = request_.follows}));
    CLEW_TRY(conditions_.start(command_));
    allow_many_files();
    if (!CLEW_TRY(record({command_, false, request_.command}))) {
      return fail(ErrorCode::Refused, nothing_recorded("the command"));
    }
    CLEW_TRY(conditions_.wait([] { return false; }));
    CLEW_TRY(launched.set_free());
    Watch watch = CLEW_TRY(Watch::seize(command_, ends()));
    hear();
    recorded_.at(command_)->set_held();
    // The terminal's signals are meant for the command.
    (void)std::signal(SIGINT, SIG_IGN);
    (void)std::signal(SIGQUIT, SIG_IGN);
    (void)conditions_.met();  // Of what we have done in it.
    CLEW_TRY(launched.go_on());
    Expected<int> status = watch.run(*this);
    snaps_.tell_suppressed();
    return status;
  }

  // Of a command that did not begin.
  [[nodiscard]] std::optional<int> failed_with() const { return failed_with_; }

  Expected<int> run_in_process() {
    CLEW_TRY(recorder::check_snap_folder(request_.directory));
    CLEW_TRY(check_recordable(request_.process));
    CLEW_TRY(conditions_.check());
    Expected<int> status = watch_process(request_.process);
    if (!status && !is_armed_ && !lives(request_.process)) {
      return fail(ErrorCode::NotFound,
                  fmt::format("process {} ended before it was recorded", request_.process));
    }
    return status;
  }

  void appeared(pid_t process) override {
    const auto maps = target::read_memory_map(process);
    if (!maps) return;
    for (const auto& [pid, recorded] : recorded_) {
      if (!recorded->is_in(*maps)) continue;
      const std::shared_ptr<RecordedProcess> shared = recorded;
      shared->set_aside(process);
      recorded_.insert_or_assign(process, shared);
      return;
    }
  }

  bool executes(pid_t process) override {
    const bool was_recorded = recorded_.contains(process);
    ended(process, process);
    if (process == command_ && was_recorded && !request_.follows) {
      notices_.warning(fmt::format("the {} runs another program now, which is not recorded",
                                   request_.process == 0 ? "command" : "process"));
    }
    return request_.follows;
  }

  void begins(pid_t process) override {
    const auto who = target::read_process(process);
    if (!who) return;
    const Expected<void> checked = check_privileges(process);
    if (!checked) return cannot_begin(process, checked.error());
    const auto recorded = record({process, true, who->arguments});
    if (!recorded) cannot_begin(process, recorded.error());
  }

  void cannot_begin(pid_t process, const Error& reason) override {
    log_step(process, "is not recorded: {}", reason.message);
    const auto who = target::read_process(process);
    if (who && reason.code != ErrorCode::NotFound) told_.tell(who->executable, reason);
  }

  void crashed(const Crash& crash, Standstill& threads) override {
    const auto recorded = recorded_.find(crash.process);
    if (recorded != recorded_.end()) snaps_.write(recorded->second->snap_of(crash, threads));
  }

  void caught(pid_t process, const WatchedThread& thread, int signal) override {
    const auto recorded = recorded_.find(process);
    if (recorded != recorded_.end()) recorded->second->caught(process, thread, signal);
  }

  bool gives_time(pid_t process, const WatchedThread& thread) override {
    const auto recorded = recorded_.find(process);
    return recorded != recorded_.end() && recorded->second->gives_time(process, thread);
  }

  [[nodiscard]] bool may_load() const override {
    return std::any_of(recorded_.begin(), recorded_.end(),
                       [](const auto& one) { return one.second->may_load(); });
  }

  std::vector<pid_t> loading() override {
    std::vector<pid_t> all;
    for (const auto& [pid, process] : recorded_) {
      if (pid == process->pid() && process->is_loading()) all.push_back(pid);
    }
    return all;
  }

  void loaded(pid_t process, bool stands) override {
    const auto recorded = recorded_.find(process);
    if (recorded == recorded_.end()) return;
    recorded->second->load(stands);
    tell_left(*recorded->second);
  }

  void ended(pid_t process, pid_t thread) override {
    const auto recorded = recorded_.find(process);
    if (recorded == recorded_.end()) return;
    recorded->second->ended(thread);
    if (thread != process) return;
    recorded_.erase(recorded);
    heartbeats_.forget(process);
  }

  [[nodiscard]] int door() const override { return door_.get(); }

  void knocked(Stops& stops) override {
    for (const Conditions::Met& met : conditions_.met())
      take_snap(met, stops);
    if (heartbeats_.is_time()) look_at_heartbeats(stops);
    const auto request = requests_ ? requests_->next() : std::nullopt;
    if (!request) return;
    std::vector<recorder::Snap> snaps;
    for (const pid_t process : asked_for(*request))
      snaps.push_back(recorded_.at(process)->snap_of(process, stops));
    if (snaps.empty()) return SnapRequests::refuse(*request, SnapAnswer::NotWatched);
    SnapRequests::answer(*request, snaps);
  }

 private:
  Expected<int> watch_process(pid_t pid) {
    const target::Process who = CLEW_TRY(target::read_process(pid));
    Stops stops = CLEW_TRY(Stops::open(Stops::EndedBy::KillAndTerminal));
    const auto is_over = [&stops] { return stops.look_ended_by() != 0; };
    CLEW_TRY(session_.begin({.processes = {pid}, .is_new = request_.follows}));
    CLEW_TRY(conditions_.start(pid));
    CLEW_TRY(conditions_.wait(is_over));
    if (is_over()) return 0;
    allow_many_files();
    command_ = pid;
    const bool is_recorded = CLEW_TRY(
        record({.pid = pid, .command = who.arguments, .is_running = true, .is_over = is_over}));
    if (!is_recorded && stops.ended_by() == 0) {
      return fail(ErrorCode::Refused, nothing_recorded(fmt::format("process {}", pid)));
    }
    if (!is_recorded || stops.ended_by() != 0) return leave(stops);
    auto watch = Watch::seize_running(pid, std::move(stops), ends());
    if (!watch) {
      Stops others = CLEW_TRY(Stops::open(Stops::EndedBy::KillAndTerminal));
      CLEW_TRY(leave(others));
      return tl::unexpected(std::move(watch.error()));
    }
    hear();
    recorded_.at(pid)->set_held();
    is_armed_ = true;
    (void)conditions_.met();  // Of what it did before.
    notices_.armed(fmt::format("recording process {}", pid));
    const Expected<int> watched = watch->run(*this);
    snaps_.tell_suppressed();
    Expected<int> left = leave(watch->stops());
    CLEW_TRY(watched);
    if (left && lives(pid))
      notices_.made(fmt::format("process {} runs on, and is recorded no more", pid));
    return left;
  }

  [[nodiscard]] std::string nothing_recorded(std::string_view who) const {
    if (!request_.by_guards) return fmt::format("no function of {} can be recorded", who);
    return fmt::format("neither {} nor a library of it has guards (clew/guards.h) [guards]", who);
  }

  [[nodiscard]] WatchedEnds ends() const { return {request_.signals, request_.exits}; }

  Expected<int> leave(Stops& stops) {
    CLEW_TRY(Leaving(recorded_, stops).run());
    return 0;
  }

  // Those of them that are recorded and live.
  [[nodiscard]] std::vector<pid_t> asked_for(const SnapRequests::Request& request) const {
    std::vector<pid_t> all;
    if (request.process != kAllProcesses) {
      all.push_back(status_of(request.process).process);
    } else {
      for (const auto& [process, recorded] : recorded_)
        all.push_back(process);
      std::sort(all.begin(), all.end());
    }
    std::erase_if(all, [this](pid_t process) {
      return !recorded_.contains(process) || !is_watched(process);
    });
    return all;
  }

  // What a process that is no more did not let us read is no news.
  void tell_left(const RecordedProcess& process) {
    if (process.left().empty() || !lives(process.pid())) return;
    for (const LeftModule& left : process.left())
      told_.tell(left.path, left.reason);
  }

  // False when nothing of it can be recorded.
  Expected<bool> record(Begun begun) {
    const pid_t pid = begun.pid;
    CLEW_TRY(check_numbers(pid));
    std::shared_ptr<RecordedProcess> process =
        CLEW_TRY(RecordedProcess::open(std::move(begun), files_, notices_));
    if (process == nullptr) return false;
    tell_left(*process);
    recorded_.insert_or_assign(pid, std::move(process));
    return true;
  }

  // Without the first there is no `clew snap`, and all else is as it is.
  void hear() {
    auto requests = SnapRequests::open(request_.group);
    if (!requests) {
      notices_.warning(requests.error().message);
    } else {
      requests_.emplace(std::move(*requests));
    }
    door_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
    if (auto started = heartbeats_.start(); !started) notices_.warning(started.error().message);
    for (const int each : {requests_ ? requests_->descriptor() : -1, conditions_.descriptor(),
                           heartbeats_.descriptor()}) {
      epoll_event event{};
      event.events = EPOLLIN;
      if (each >= 0 && epoll_ctl(door_.get(), EPOLL_CTL_ADD, each, &event) != 0)
        notices_.warning(fmt::format("nobody can ask for snaps: epoll: {}", error_text(errno)));
    }
  }

  // It has run on since.
  void take_snap(const Conditions::Met& met, Stops& stops) {
    recorder::Snap head;
    head.pid = met.process;
    head.reason.thread = met.thread;
    head.condition = met.condition->query;
    if (take_snap(std::move(head), met.rows, stops)) snaps_.count_same_query(met.rows - 1);
  }

  void look_at_heartbeats(Stops& stops) {
    std::vector<recorder::Snap> heads;
    for (const auto& [process, recorded] : recorded_) {
      const auto lost = heartbeats_.lost(process, recorded->written(process));
      if (lost.count() == 0) continue;
      recorder::Snap head;
      head.pid = process;
      head.reason.trigger = recorder::SnapTrigger::Heartbeat;
      const auto lost_ms = std::chrono::duration_cast<std::chrono::milliseconds>(lost).count();
      head.reason.code = static_cast<int32_t>(std::min<int64_t>(lost_ms, INT32_MAX));
      heads.push_back(std::move(head));
    }
    for (recorder::Snap& head : heads)
      take_snap(std::move(head), 1, stops);
  }

  // `head`: what is known of it already. The process stands only if there may be a snap.
  bool take_snap(recorder::Snap head, unsigned rows, Stops& stops) {
    const auto recorded = recorded_.find(head.pid);
    if (recorded == recorded_.end() || !is_watched(head.pid)) return false;
    head.reason.time_ns = static_cast<uint64_t>(clock_ns(CLOCK_REALTIME));
    head.command = recorded->second->command();
    if (!snaps_.wants(head, rows)) return false;
    recorder::Snap snap = recorded->second->snap_of(head.pid, stops);
    head.reason.time_ns = snap.reason.time_ns;
    snap.reason = head.reason;
    snap.condition = std::move(head.condition);
    return snaps_.write(snap);
  }

  const RecordRequest& request_;
  Notices& notices_;
  ledger::Session& session_;
  std::optional<SnapRequests> requests_;
  FileDescriptor door_;  // epoll(7), of the requests and the conditions.
  ModuleFiles files_;
  SnapWriter snaps_;
  Conditions conditions_;
  Heartbeats heartbeats_;
  LeftTold told_;
  std::optional<int> failed_with_;
  pid_t command_ = 0;
  bool is_armed_ = false;  // A process that ran already.
  RecordedProcesses recorded_;
};

Expected<ledger::Session> open_session(const RecordRequest& request, Notices& notices) {
  std::vector<pid_t> processes;
  if (request.process != 0) processes.push_back(request.process);
  std::string text = fmt::format("{}", fmt::join(request.command, " "));
  for (const recorder::Condition& condition : request.conditions)
    text += "\n" + condition.query;
  return ledger::Session::open(
      {.text = std::move(text),
       .text_name = "",
       .processes = std::move(processes),
       .warn = [&notices](std::string_view warning) { notices.warning(warning); }});
}

}  // namespace

tl::expected<int, NotRecorded> record(const RecordRequest& request, Notices& notices) {
  auto session = open_session(request, notices);
  if (!session) return tl::unexpected(NotRecorded{std::move(session.error()), std::nullopt});
  Recorder recorder(request, notices, *session);
  Expected<int> status = request.process != 0 ? recorder.run_in_process() : recorder.run();
  session->end(status);
  if (status) return *status;
  return tl::unexpected(NotRecorded{std::move(status.error()), recorder.failed_with()});
}

}  // namespace clew::engine
