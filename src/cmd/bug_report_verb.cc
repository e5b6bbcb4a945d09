// SPDX-License-Identifier: Apache-2.0
// clew bug-report: one file of text with what who mends Clew asks for first. It can be read before
// it is handed on, has no traced data, and of queries not what they look for.
#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "cmd/console.h"
#include "cmd/parse_arguments.h"
#include "cmd/verbs.h"
#include "cmd/without_literals.h"
#include "doctor/doctor.h"
#include "ledger/one_line.h"
#include "ledger/places.h"
#include "ledger/read.h"
#include "ledger/site_rules.h"
#include "ledger/system_log.h"

namespace clew::cmd {
namespace {

constexpr size_t kSessionsReported = 20;
constexpr size_t kReportedCharacters = 2000;

// The rest of the first line that begins so; the name of a value in /proc/cpuinfo, os-release(5).
std::string value_in(const char* path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const size_t begin = line.find_first_not_of(" \t:=\"", name.size());
    const size_t end = line.find_last_not_of(" \"");
    if (begin == std::string::npos || end < begin) return "";
    return ledger::one_line(line.substr(begin, end + 1 - begin), 8 * kReportedCharacters);
  }
  return "not known";
}

std::string machine_text() {
  utsname system{};
  (void)uname(&system);
  return fmt::format("clew {}\nkernel: {} {} {}\ndistribution: {}\nprocessors: {}, {}\nflags: {}\n",
                     CLEW_VERSION, system.sysname, system.release, system.machine,
                     value_in("/etc/os-release", "PRETTY_NAME"), sysconf(_SC_NPROCESSORS_ONLN),
                     value_in("/proc/cpuinfo", "model name"), value_in("/proc/cpuinfo", "flags"));
}

std::string rules_text() {
  const auto rules = ledger::read_site_rules();
  if (!rules) return rules.error().message + "\n";
  if (rules->path.empty()) return fmt::format("there is no {}\n", ledger::kSiteRulesPath);
  std::ifstream file(rules->path);
  std::string text;
  for (std::string line; std::getline(file, line);)
    text += ledger::one_line(line, kReportedCharacters) + "\n";
  return text;
}

// A command line is a matter of who wrote it: its program alone is told.
std::string text_of(const ledger::Beginning& beginning) {
  if (beginning.verb != "record")
    return ledger::one_line(without_literals(without_head(beginning.text)), kReportedCharacters);
  return ledger::one_line(beginning.text.substr(0, beginning.text.find_first_of(" \n")),
                          kReportedCharacters);
}

std::string session_text(const ledger::ToldSession& session) {
  constexpr size_t kNamed = 4;
  const ledger::Beginning& beginning = session.beginning;
  std::string text =
      fmt::format("{} {} {} of {}: {}", ledger::time_text(beginning.time_ns),
                  beginning.who.uid == 0 ? "root" : "a user",
                  ledger::one_line(without_literals(beginning.verb), kReportedCharacters),
                  ledger::shown_targets(beginning, kNamed), ledger::status_of(session));
  if (session.ending) {
    const ledger::Ending& ending = *session.ending;
    if (ending.lasted_ns)
      text += fmt::format(", {:.1f} s", static_cast<double>(*ending.lasted_ns) / 1e9);
    text += fmt::format(", {} missed, {} dropped", ending.missed, ending.dropped);
    // A refusal may name a user; and in prose an apostrophe is no quote.
    const std::string reason = ending.reason.substr(0, ending.reason.find_first_of("\"'`"));
    if (!reason.empty() && ending.status != ledger::Status::Refused)
      text += ": " + ledger::one_line(reason, kReportedCharacters);
  }
  return fmt::format("{}\n  {}\n", text, text_of(beginning));
}

std::string sessions_text() {
  const auto told = ledger::read_sessions(ledger::places_here().folder);
  if (!told) return told.error().message + "\n";
  if (told->sessions.empty()) return "none\n";
  std::string text;
  const size_t count = std::min(told->sessions.size(), kSessionsReported);
  for (size_t i = told->sessions.size() - count; i < told->sessions.size(); ++i)
    text += session_text(told->sessions[i]);
  return text;
}

std::string report_text() {
  return fmt::format(
      "A bug report of clew. In it are: the versions of clew, kernel and distribution; the\n"
      "processor's name and flags; what clew doctor says; the rules of the site, as they are, "
      "with\n"
      "names of users;\n"
      "and the last {} sessions of the log, with names and pids of processes, but without names "
      "of\n"
      "users, what stands in quotes or comments in queries, and traced data.\n\n"
      "--- machine\n{}\n--- clew doctor\n{}\n--- {}\n{}\n--- sessions\n{}",
      kSessionsReported, machine_text(), doctor::diagnose(doctor::Request{}).text,
      ledger::kSiteRulesPath, rules_text(), sessions_text());
}

// A file that is there is somebody's.
Expected<void> write_new(const std::string& path, std::string_view text) {
  const FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file.valid()) return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
  while (!text.empty()) {
    const ssize_t count = write(file.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
    text.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

}  // namespace

int bug_report_verb(int argument_count, const char* const* arguments) {
  CLI::App app{"Writes a file for a bug report: versions, what doctor says, the last sessions.",
               "clew bug-report"};
  std::string path = "clew-bug-report.txt";
  app.add_option("-o,--output", path, "the file, which must not be there (clew-bug-report.txt)")
      ->default_str("");
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  const Expected<void> written = write_new(path, report_text());
  if (!written) return report(written.error());
  fmt::print("{}\n", path);
  Console(/*quiet=*/false)
      .made("it says at its beginning what is in it; read it before you hand it on");
  return kExitAnswered;
}

}  // namespace clew::cmd
