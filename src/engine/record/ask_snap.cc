// SPDX-License-Identifier: Apache-2.0
#include "engine/record/ask_snap.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "engine/record/snap_connection.h"
#include "inline/is_recorded.h"
#include "ledger/session.h"
#include "recorder/save_snap.h"
#include "recorder/snap.h"
#include "target/process.h"

namespace clew::engine {

namespace {

tl::unexpected<Error> not_recorded(pid_t process) {
  return fail(ErrorCode::Refused,
              fmt::format("process {} is not recorded: start it with clew record", process));
}

std::vector<target::Process> recorded_by(pid_t recorder) {
  auto all = target::list_processes();
  if (!all) return {};
  std::erase_if(*all, [recorder](const target::Process& process) {
    const auto facts = target::read_facts(process.pid());
    return !facts || facts->tracer_pid != recorder || !inline_::is_recorded(process.pid());
  });
  return std::move(*all);
}

// Of a process that nobody traces: it may be one that records others, or have been recorded.
tl::unexpected<Error> why_not_recorded(pid_t process) {
  constexpr size_t kNamedMax = 10;
  const std::vector<target::Process> all = recorded_by(process);
  if (all.empty() && !inline_::is_recorded(process)) return not_recorded(process);
  if (const pid_t recorder = inline_::recorder_of(process); all.empty() && recorder != 0) {
    return fail(
        ErrorCode::Refused,
        fmt::format("process {} is not recorded yet: process {} prepares that", process, recorder));
  }
  if (all.empty()) {
    return fail(ErrorCode::Refused,
                fmt::format("process {} was recorded, and its recorder is gone: nobody reads what "
                            "it records any more",
                            process));
  }
  std::string named;
  for (size_t i = 0; i < all.size() && i < kNamedMax; ++i) {
    named +=
        fmt::format("{}{} ({})", i == 0 ? "" : ", ", all[i].pid(), target::program_name(all[i]));
  }
  if (all.size() > kNamedMax) named += fmt::format(" and {} others", all.size() - kNamedMax);
  return fail(ErrorCode::Refused,
              fmt::format("process {} is a recorder; it records {}: clew snap {}", process, named,
                          all.front().pid()));
}

Expected<pid_t> tracer_of(pid_t process) {
  const auto facts = target::read_facts(process);
  if (!facts) {
    if (facts.error().code != ErrorCode::NotFound) return tl::unexpected(facts.error());
    return fail(ErrorCode::NotFound, fmt::format("there is no process {}", process));
  }
  if (facts->tracer_pid != 0) return facts->tracer_pid;
  return why_not_recorded(process);
}

Expected<SnapConnection> connect_to_recorder(pid_t process, pid_t recorder) {
  const auto deadline = SnapConnection::new_deadline();
  const auto is_its = [recorder](const RecorderSocket& one) { return one.recorder == recorder; };
  for (const RecorderSocket& socket : recorder_sockets(is_its)) {
    if (auto connection = SnapConnection::open(socket, deadline)) return std::move(*connection);
  }
  const auto tracer = target::read_process(recorder);
  return fail(ErrorCode::Refused,
              fmt::format("process {} is traced by {} ({}), which is no clew record that can be "
                          "asked from here",
                          process, tracer ? target::program_name(*tracer) : "another", recorder));
}

Expected<std::string> ask_told(const SnapRequest& request, ledger::Session& session) {
  CLEW_TRY(recorder::check_snap_folder(request.directory));
  const pid_t recorder = CLEW_TRY(tracer_of(request.process));
  SnapConnection connection = CLEW_TRY(connect_to_recorder(request.process, recorder));
  CLEW_TRY(session.begin({.processes = {request.process}}));
  const StepTime time;
  CLEW_TRY(connection.ask(request.process));
  const std::vector<recorder::Snap> snaps = CLEW_TRY(connection.answer());
  log_step(request.process, "its recorder ({}) answered in {:.1f} ms", recorder, time.ms());
  if (snaps.empty()) return not_recorded(request.process);
  return recorder::save_snap(request.directory, snaps.front());
}

}  // namespace

Expected<std::string> ask_snap(const SnapRequest& request) {
  ledger::Session session =
      CLEW_TRY(ledger::Session::open({.text = "a snap to " + request.directory,
                                      .text_name = "",
                                      .processes = {request.process},
                                      .warn = ledger::warn_on_standard_error}));
  Expected<std::string> path = ask_told(request, session);
  session.end(path);
  return path;
}

}  // namespace clew::engine
