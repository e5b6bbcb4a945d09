// SPDX-License-Identifier: Apache-2.0
#include "doctor/cause.h"

#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

namespace clew::doctor {
namespace {

constexpr std::string_view kTables = "docs/query-language.md, Messages, has the lines";

std::string file_of(const engine::KnownCauses& known) {
  return std::filesystem::path(known.file).filename();
}

void judge_program(const engine::KnownCauses& known, Findings& findings) {
  const std::string says = fmt::format("{}: {}", known.program, known.says);
  if (!known.has_table) {
    findings.note("program",
                  {.detail = says,
                   .refused = "requests through its messages",
                   .remedy = fmt::format("say it in a vocabulary (--vocabulary): {}", kTables)});
  } else if (!known.is_believed) {
    findings.note("program", {.detail = fmt::format("{} ({})", says, file_of(known)),
                              .refused = "requests through its messages, as this may be wrong",
                              .remedy = "with cause >= heuristic believes it"});
  } else {
    findings.ok("program", fmt::format("{} ({})", says, file_of(known)));
  }
}

void judge_messages(const CauseView& view, Findings& findings) {
  if (!view.is_root) {
    findings.note("messages", {.detail = "who sends which bytes is told by the kernel, to root",
                               .refused = "requests that come or go with messages",
                               .remedy = "run as root"});
  } else if (!view.known.message_problem.empty()) {
    findings.note("messages", {.detail = view.known.message_problem,
                               .refused = "requests that come or go with messages: the kernel "
                                          "has neither the tracepoints of sockets of Linux 6.3 nor "
                                          "those of system calls"});
  } else {
    findings.ok("messages", "TCP and UNIX sockets are followed, by what the kernel sees");
  }
}

// What resolves in this build, and what does not: a vocabulary may be of another version.
void judge_hand_over(const engine::HandOver& each, Findings& findings) {
  std::vector<std::string> there;
  std::vector<std::string> problems;
  for (const engine::HandOverPlace& place : each.places) {
    if (place.problem.empty()) {
      there.push_back(place.text);
    } else {
      problems.push_back(place.problem);
    }
  }
  const std::string what = fmt::format("{} ({}, {})", each.tracepoint, each.cause, each.how);
  if (problems.empty())
    return findings.ok("hand-over", fmt::format("{} at {}", what, fmt::join(there, ", ")));
  // The query is refused, too.
  findings.problem("hand-over",
                   {.detail = fmt::format("{}: {}", what, fmt::join(problems, "; ")),
                    .refused = "queries with joins, as requests would be lost or mixed here: the "
                               "vocabulary is of another build of it",
                    .remedy = "--allow-missing does without"});
}

void judge_hand_overs(const engine::KnownCauses& known, Findings& findings) {
  for (const engine::HandOver& each : known.hand_overs)
    judge_hand_over(each, findings);
  if (!known.hand_overs.empty()) return;
  findings.note("hand-over",
                {.detail = "no vocabulary says that it hands requests from one thread to another",
                 .refused = "requests through its queues and pools, if it has some"});
}

void add(std::vector<std::string>& parts, size_t count, std::string_view what) {
  if (count != 0) parts.push_back(fmt::format("{} {}", count, what));
}

void judge_open(const CauseView& view, Findings& findings) {
  const engine::OpenCarriers& open = view.open;
  findings.ok("connections",
              fmt::format("{} TCP and {} UNIX sockets are open", open.tcp, open.unix_sockets));
  if (view.known.follows_pipes) {
    findings.ok("pipes",
                fmt::format("{} ends are open, what is read there is followed", open.pipes));
  }
  std::vector<std::string> unseen;
  add(unseen, open.unix_datagrams, "UNIX sockets of datagrams");
  if (!view.known.follows_pipes) add(unseen, open.pipes, "ends of pipes");
  add(unseen, open.udp, "UDP sockets");
  add(unseen, open.other_sockets, "sockets of other kinds or other namespaces");
  add(unseen, open.io_urings, "io_urings");
  if (unseen.empty()) return;
  findings.note("unseen", {.detail = fmt::format("{} are open, too", fmt::join(unseen, ", ")),
                           .refused = "requests through them"});
}

}  // namespace

Expected<CauseView> read_cause_view(pid_t pid, const std::vector<std::string>& vocabulary_paths) {
  return CauseView{.pid = pid,
                   .is_root = geteuid() == 0,
                   .known = CLEW_TRY(engine::find_known_causes(pid, vocabulary_paths)),
                   .open = engine::open_carriers(pid)};
}

Findings judge(const CauseView& view) {
  Findings findings(fmt::format("causes in process {}", view.pid));
  judge_program(view.known, findings);
  judge_messages(view, findings);
  judge_hand_overs(view.known, findings);
  judge_open(view, findings);
  return findings;
}

}  // namespace clew::doctor
