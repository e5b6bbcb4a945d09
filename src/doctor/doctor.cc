// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor.h"

#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doctor/cause.h"
#include "doctor/findings.h"
#include "doctor/machine.h"
#include "doctor/process.h"
#include "ledger/session.h"
#include "ledger/site_rules.h"

namespace clew::doctor {
namespace {

// Looking alone touches nothing.
Expected<ProcessView> view_told(pid_t pid) {
  ledger::Session session =
      CLEW_TRY(ledger::Session::open({.text = "--stop",
                                      .text_name = "",
                                      .processes = {pid},
                                      .warn = ledger::warn_on_standard_error}));
  CLEW_TRY(session.begin({.processes = {pid}}));
  Expected<ProcessView> view = read_process_view(pid, true);
  session.end(view);
  return view;
}

Findings look_at(const Request& request, const Machine& machine) {
  const auto view =
      request.may_stop ? view_told(*request.pid) : read_process_view(*request.pid, false);
  if (view) return judge(*view, machine);
  Findings findings(fmt::format("process {}", *request.pid));
  findings.problem("process", {.detail = view.error().message});
  return findings;
}

std::string listed(const std::vector<std::string>& words) {
  return words.empty() ? "nobody" : fmt::format("{}", fmt::join(words, ", "));
}

// What whoever keeps the machine forbids on it.
void judge_site(Findings& findings) {
  const auto rules = ledger::read_site_rules();
  if (!rules) {
    return findings.problem("site-rules", {.detail = rules.error().message,
                                           .refused = "all sessions",
                                           .remedy = "mend the file, as root"});
  }
  if (rules->path.empty())
    return findings.ok("site-rules", fmt::format("there is no {}", ledger::kSiteRulesPath));
  std::vector<std::string> refused;
  std::vector<std::string> programs;
  for (const target::Pattern& pattern : rules->deny_programs)
    programs.push_back(pattern.text());
  if (rules->names_users)
    refused.push_back("sessions of others than " + listed(rules->allow_users));
  if (!programs.empty()) refused.push_back("sessions in " + listed(programs));
  if (rules->is_log_required) refused.emplace_back("sessions that the log cannot have");
  if (refused.empty()) return findings.ok("site-rules", rules->path + " forbids nothing");
  findings.note("site-rules", {.detail = rules->path + " is there",
                               .refused = fmt::format("{}", fmt::join(refused, "; "))});
}

}  // namespace

Diagnosis diagnose(const Request& request) {
  const Machine machine = read_machine();
  Findings of_machine = judge(machine);
  judge_site(of_machine);
  std::vector<Finding> all = of_machine.all();
  Diagnosis diagnosis;
  diagnosis.problems = of_machine.problems();
  if (request.pid) {
    const Findings of_process = look_at(request, machine);
    all.insert(all.end(), of_process.all().begin(), of_process.all().end());
    diagnosis.problems += of_process.problems();
  }
  diagnosis.text = request.json ? json_of(all) : text_of(all);
  return diagnosis;
}

namespace {

void add_measured(const CauseRequest& request, Findings& findings) {
  const auto measured = measure(request.pid, *request.measure, request.vocabulary_paths);
  if (measured) return judge(*measured, findings);
  findings.problem("measured", {.detail = measured.error().message});
}

}  // namespace

Diagnosis diagnose_causes(const CauseRequest& request) {
  const Expected<CauseView> view = read_cause_view(request.pid, request.vocabulary_paths);
  Findings findings(fmt::format("process {}", request.pid));
  if (view) {
    findings = judge(*view);
    if (request.measure) add_measured(request, findings);
  } else {
    findings.problem("process", {.detail = view.error().message});
  }
  return {.text = request.json ? json_of(findings.all()) : text_of(findings.all()),
          .problems = findings.problems()};
}

}  // namespace clew::doctor
