// SPDX-License-Identifier: Apache-2.0
// clew log: who traced what (ledger/session.h).
#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/clock_ns.h"
#include "cmd/console.h"
#include "cmd/duration.h"
#include "cmd/parse_arguments.h"
#include "cmd/verbs.h"
#include "cmd/without_literals.h"
#include "ledger/one_line.h"
#include "ledger/places.h"
#include "ledger/read.h"
#include "ledger/system_log.h"

namespace clew::cmd {
namespace {

constexpr int64_t kNsInSecond = 1'000'000'000;

struct LogArguments {
  std::string since;
  std::optional<pid_t> pid;
  std::string user;
  std::optional<uint64_t> last;
  bool json = false;
};

// By name or number, as whom they logged in, became, or were before sudo.
bool is_of_user(const ledger::Who& who, const std::string& user) {
  if (user == who.user || user == who.login_user || user == who.sudo_user) return true;
  uid_t uid = 0;
  const auto parsed = std::from_chars(user.data(), user.data() + user.size(), uid);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == user.data() + user.size();
  return is_number && (uid == who.uid || uid == who.login_uid);
}

bool has_process(const ledger::Beginning& beginning, pid_t pid) {
  return std::any_of(beginning.processes.begin(), beginning.processes.end(),
                     [pid](const ledger::TouchedProcess& one) { return one.pid == pid; });
}

// One that ran in that time, even if it began before.
bool is_since(const ledger::ToldSession& session, int64_t time_ns) {
  return session.state == ledger::State::Running || session.beginning.time_ns >= time_ns ||
         (session.ending && session.ending->time_ns >= time_ns);
}

Expected<std::vector<ledger::ToldSession>> wanted(std::vector<ledger::ToldSession> all,
                                                  const LogArguments& arguments) {
  int64_t since_ns = 0;
  if (!arguments.since.empty()) {
    since_ns =
        clock_ns(CLOCK_REALTIME) - static_cast<int64_t>(CLEW_TRY(parse_duration(arguments.since)));
  }
  std::erase_if(all, [&](const ledger::ToldSession& one) {
    return !is_since(one, since_ns) ||
           (arguments.pid && !has_process(one.beginning, *arguments.pid)) ||
           (!arguments.user.empty() && !is_of_user(one.beginning.who, arguments.user));
  });
  if (arguments.last && all.size() > *arguments.last)
    all.erase(all.begin(), all.end() - static_cast<ptrdiff_t>(*arguments.last));
  return all;
}

std::string local_time(int64_t time_ns) {
  const std::time_t seconds = time_ns / kNsInSecond;
  std::tm parts{};
  std::array<char, 32> text{};
  if (localtime_r(&seconds, &parts) == nullptr) return "";
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts)};
}

std::string lasted_text(const ledger::ToldSession& session) {
  std::optional<int64_t> ns;
  if (session.ending) ns = session.ending->lasted_ns;
  if (session.state == ledger::State::Running)
    ns = clock_ns(CLOCK_REALTIME) - session.beginning.time_ns;
  return ns ? fmt::format("{:.1f} s", static_cast<double>(*ns) / kNsInSecond) : "-";
}

// How it ended, and what its answer lacks.
std::string outcome_text(const ledger::ToldSession& session) {
  constexpr size_t kReasonCharacters = 100;
  std::string text(ledger::status_of(session));
  if (!session.ending) return text;
  const ledger::Ending& ending = *session.ending;
  if (ending.rows) text += fmt::format(", {} row{}", *ending.rows, *ending.rows == 1 ? "" : "s");
  if (ending.missed != 0) text += fmt::format(", {} missed", ending.missed);
  if (ending.dropped != 0) text += fmt::format(", {} dropped", ending.dropped);
  if (!ending.reason.empty()) text += ": " + ledger::one_line(ending.reason, kReasonCharacters);
  return text;
}

// A session is two lines: a table would be wider than any terminal.
void print_session(const ledger::ToldSession& session) {
  constexpr size_t kNamed = 8;
  constexpr size_t kTextCharacters = 200;
  const ledger::Beginning& beginning = session.beginning;
  fmt::print("{}  {:>8}  {}: {} of {}: {}\n", local_time(beginning.time_ns), lasted_text(session),
             ledger::shown_who(beginning.who), ledger::one_line(beginning.verb, kTextCharacters),
             ledger::shown_targets(beginning, kNamed), outcome_text(session));
  const std::string text = ledger::one_line(without_head(beginning.text), kTextCharacters);
  if (!text.empty()) fmt::print("{:>31}{}\n", "", text);
}

void print_json(const ledger::ToldSession& session) {
  fmt::print("{}", ledger::line_of(session.beginning, session.ending ? &*session.ending : nullptr,
                                   ledger::status_of(session)));
}

Expected<int> show_log(const LogArguments& arguments) {
  const std::string folder = ledger::places_here().folder;
  if (folder.empty())
    return fail(ErrorCode::NotFound, "there is no home in which sessions could be told");
  ledger::Told told = CLEW_TRY(ledger::read_sessions(folder));
  const bool has_some = !told.sessions.empty();
  const std::vector<ledger::ToldSession> sessions =
      CLEW_TRY(wanted(std::move(told.sessions), arguments));
  for (const ledger::ToldSession& session : sessions)
    arguments.json ? print_json(session) : print_session(session);
  Console console(/*quiet=*/false);
  if (told.damaged_lines != 0) {
    console.warning(fmt::format("{} line{} of {} {} damaged", told.damaged_lines,
                                told.damaged_lines == 1 ? "" : "s", folder,
                                told.damaged_lines == 1 ? "is" : "are"));
  }
  if (sessions.empty() && !arguments.json)
    console.made(has_some ? "no such session" : fmt::format("no session is told in {}", folder));
  return kExitAnswered;
}

}  // namespace

int log_verb(int argument_count, const char* const* arguments) {
  CLI::App app{"Shows who traced what, and how it ended.", "clew log"};
  LogArguments parsed;
  app.add_option("--since", parsed.since, "sessions that ran in this time: 1h, 2d")
      ->check(duration());
  app.add_option("--pid", parsed.pid, "those that touched this process")->check(whole_number(1));
  app.add_option("--user", parsed.user,
                 "those of this user (name or number), also as somebody else");
  app.add_option("--last", parsed.last, "so many at most, the last ones")->check(whole_number(1));
  app.add_flag("--json", parsed.json, "one JSON object a line");
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  const Expected<int> status = show_log(parsed);
  return status ? *status : report(status.error());
}

}  // namespace clew::cmd
