// SPDX-License-Identifier: Apache-2.0
// clew doctor: what stands in the way of tracing on this machine and in a process, before anything
// is changed.
#include <iterator>

#include <fmt/format.h>

#include "engine/doctor/findings.h"
#include "engine/doctor/machine.h"
#include "engine/doctor/process.h"
#include "engine/inventory.h"

namespace clew::engine {
namespace {

doctor::Findings look_at(const DoctorRequest& request, const doctor::Machine& machine) {
  const auto view = doctor::read_process_view(*request.pid, request.may_stop);
  if (view) return doctor::judge(*view, machine);
  doctor::Findings findings(fmt::format("process {}", *request.pid));
  findings.problem("process", {.detail = view.error().message});
  return findings;
}

}  // namespace

Diagnosis diagnose(const DoctorRequest& request) {
  const doctor::Machine machine = doctor::read_machine();
  const doctor::Findings of_machine = doctor::judge(machine);
  std::vector<doctor::Finding> all = of_machine.all();
  Diagnosis diagnosis;
  diagnosis.problems = of_machine.problems();
  if (request.pid) {
    const doctor::Findings of_process = look_at(request, machine);
    all.insert(all.end(), of_process.all().begin(), of_process.all().end());
    diagnosis.problems += of_process.problems();
  }
  diagnosis.text = request.json ? doctor::json_of(all) : doctor::text_of(all);
  return diagnosis;
}

}  // namespace clew::engine
