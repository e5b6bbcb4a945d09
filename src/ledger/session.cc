// SPDX-License-Identifier: Apache-2.0
#include "ledger/session.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock_ns.h"
#include "ledger/site_rules.h"
#include "ledger/system_log.h"
#include "ledger/who.h"

namespace clew::ledger {
namespace {

Expected<SiteRules> rules_for(const Who& who) {
  SiteRules rules = CLEW_TRY(read_site_rules());
  CLEW_TRY(check_user(rules, who));
  return rules;
}

// One that nobody traces is no reason to leave the others alone, where it is left out later.
Expected<void> check_programs(const SiteRules& rules, const Scope& scope) {
  std::optional<Error> first;
  size_t denied = 0;
  for (const pid_t pid : scope.processes) {
    const auto allowed = check_program(rules, pid);
    if (allowed) continue;
    ++denied;
    first = first.value_or(allowed.error());
  }
  const bool are_others = denied < scope.processes.size();
  if (!first || (scope.is_judged_one_by_one && are_others)) return {};
  return tl::unexpected(*first);
}

}  // namespace

void warn_on_standard_error(std::string_view text) {
  const std::string line = fmt::format("clew: warning: {}\n", text);
  (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

Session::Session(Wish wish) : wish_(std::move(wish)) {
  beginning_.time_ns = clock_ns(CLOCK_REALTIME);
  // See folder.cc, is_own().
  beginning_.session = fmt::format("{:x}-{:x}", beginning_.time_ns, getpid());
  beginning_.verb = our_verb();
  beginning_.clew_pid = getpid();
  beginning_.who = who_we_are();
  set_processes(wish_.processes);
  set_text(std::move(wish_.text), std::move(wish_.text_name));
}

void Session::set_text(std::string text, std::string name) {
  beginning_.text_bytes = text.size();
  beginning_.text = std::move(text);
  beginning_.text.resize(std::min(beginning_.text.size(), kTextBytesMax));
  beginning_.text_name = std::move(name);
}

void Session::set_processes(const std::vector<pid_t>& processes) {
  beginning_.process_count = processes.size();
  const size_t count = std::min(processes.size(), kProcessesMax);
  beginning_.processes.resize(count);
  std::transform(processes.begin(), processes.begin() + static_cast<ptrdiff_t>(count),
                 beginning_.processes.begin(), touched_process);
}

Expected<Session> Session::open(Wish wish) {
  Session session(std::move(wish));
  const auto rules = rules_for(session.beginning_.who);
  if (!rules && session.wish_.is_removal) session.wish_.warn(rules.error().message);
  if (rules || session.wish_.is_removal) return session;
  session.end(&rules.error());
  return tl::unexpected(rules.error());
}

Session::~Session() {
  if (!open_.is || !has_begun_) return;
  const Error unknown{ErrorCode::Io, "it ended in a way that is not known"};
  end(&unknown);
}

Expected<void> Session::begin(const Scope& scope) {
  beginning_.time_ns = clock_ns(CLOCK_REALTIME);
  beginning_.is_kernel = scope.is_kernel;
  beginning_.is_new = scope.is_new;
  set_processes(scope.processes);
  // As they are now: they may have been changed since.
  SiteRules rules;
  if (!wish_.is_removal) {
    rules = CLEW_TRY(rules_for(beginning_.who));
    CLEW_TRY(check_programs(rules, scope));
  }
  has_begun_ = true;
  const std::string line = line_of(beginning_);
  write(line);
  if (folder_) {
    auto mark = folder_->mark_running(beginning_.session, line);
    if (mark) mark_ = std::move(*mark);
    if (!mark) tell_once(mark.error());
  }
  if (is_told_ && rules.is_log_required) {
    has_begun_ = false;
    mark_.remove();
    return fail(ErrorCode::Refused,
                fmt::format("{} wants each session in the log, which cannot be written (require)",
                            rules.path));
  }
  tell_system(wish_.places, beginning_);
  note_killed();
  return {};
}

void Session::end(const Error* problem) {
  if (!std::exchange(open_.is, false)) return;
  if (!has_begun_ && problem == nullptr) return;
  Ending ending{.session = beginning_.session,
                .time_ns = clock_ns(CLOCK_REALTIME),
                .rows = counts_.rows,
                .missed = counts_.missed,
                .dropped = counts_.dropped};
  if (counts_.is_stopped) ending.status = Status::Stopped;
  if (problem != nullptr) {
    // By then it is told, but what it wanted to touch has not been.
    const bool is_refused = !has_begun_ || (!is_tracing_ && problem->code == ErrorCode::Refused);
    ending.status = is_refused ? Status::Refused : Status::Failed;
    // Of a diagnostic the other lines show the text, which is there already.
    const size_t line_end = problem->message.find('\n');
    ending.reason = problem->message.substr(0, std::min(line_end, kReasonBytesMax));
  }
  if (has_begun_) ending.lasted_ns = ending.time_ns - beginning_.time_ns;
  write(has_begun_ ? line_of(ending) : line_of_refused(beginning_, ending));
  mark_.remove();
  tell_system(wish_.places, beginning_, ending);
}

void Session::note_killed() {
  if (!folder_) return;
  for (const std::string& text : folder_->take_killed()) {
    const auto line = parse_line(text);
    if (!line || !line->beginning) continue;
    const Beginning& killed = *line->beginning;
    const Ending ending{.session = killed.session,
                        .time_ns = clock_ns(CLOCK_REALTIME),
                        .status = Status::Killed,
                        .reason = fmt::format("process {} is gone; session {} has found that",
                                              killed.clew_pid, beginning_.session)};
    write(line_of(ending));
    tell_system(wish_.places, killed, ending);
  }
}

void Session::write(std::string_view line) {
  if (!folder_) {
    if (wish_.places.folder.empty())
      return tell_once({ErrorCode::NotFound, "there is no home that it could be in"});
    auto folder = Folder::open(wish_.places.folder);
    if (!folder) return tell_once(folder.error());
    folder_ = std::move(*folder);
  }
  const auto written = folder_->append(line);
  if (!written) tell_once(written.error());
}

void Session::tell_once(const Error& problem) {
  if (std::exchange(is_told_, true)) return;
  wish_.warn(fmt::format("the log of sessions lacks this one: {}", problem.message));
}

}  // namespace clew::ledger
