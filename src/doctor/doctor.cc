// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor.h"

#include <iterator>

#include <fmt/format.h>

#include "doctor/cause.h"
#include "doctor/findings.h"
#include "doctor/machine.h"
#include "doctor/process.h"

namespace clew::doctor {
namespace {

Findings look_at(const Request& request, const Machine& machine) {
  const auto view = read_process_view(*request.pid, request.may_stop);
  if (view) return judge(*view, machine);
  Findings findings(fmt::format("process {}", *request.pid));
  findings.problem("process", {.detail = view.error().message});
  return findings;
}

}  // namespace

Diagnosis diagnose(const Request& request) {
  const Machine machine = read_machine();
  const Findings of_machine = judge(machine);
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
