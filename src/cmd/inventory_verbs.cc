// SPDX-License-Identifier: Apache-2.0
// clew list, explain, doctor, ps, detach: print what the engine knows.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cmd/console.h"
#include "cmd/parse_arguments.h"
#include "cmd/request.h"
#include "cmd/verbs.h"
#include "engine/explain.h"
#include "engine/inventory.h"

namespace clew::cmd {
namespace {

int print_or_report(const Expected<std::string>& text) {
  if (!text) return report(text.error());
  fmt::print("{}", *text);
  return kExitAnswered;
}

}  // namespace

int list_verb(int argument_count, const char* const* arguments) {
  CLI::App app{"Shows what can be traced: functions, fields, tracepoints.", "clew list"};
  engine::ListRequest request;
  bool fields = false;
  bool tracepoints = false;
  app.add_option("pattern", request.pattern, "module!function, with * ? [..]; all by default");
  app.add_option("-p,--pid", request.pid, "functions of this process");
  app.add_option("-n,--name", request.name, "functions of the process with this name");
  app.add_option("--file", request.file, "functions of this program or library");
  app.add_flag("--sites", request.sites, "also whether entries and exits can be taken");
  app.add_flag("--json", request.json, "one JSON object a line");
  app.add_flag("--fields", fields, "what every event exports");
  app.add_flag("--tracepoints", tracepoints, "named tracepoints of the vocabulary");
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  if (fields) return print_or_report(engine::list_fields());
  if (tracepoints) return print_or_report(engine::list_tracepoints(default_vocabularies()));
  return print_or_report(engine::list_functions(request));
}

int explain_verb(int argument_count, const char* const* arguments) {
  CLI::App app{"Shows how a query would run; changes nothing.", "clew explain"};
  RequestArguments parsed;
  engine::ExplainOptions options;
  declare_request(app, parsed);
  app.add_flag("--programs", options.programs, "the probe programs");
  app.add_flag("--code", options.code, "their machine code");
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  const Expected<engine::Request> request = request_of(parsed);
  if (!request) return report(request.error());
  return print_or_report(engine::explain(*request, options));
}

int doctor_verb(int argument_count, const char* const* arguments) {
  CLI::App app{"Checks this machine, and a process, for what tracing needs.", "clew doctor"};
  std::optional<pid_t> pid;
  app.add_option("-p,--pid", pid, "also this process");
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  const engine::Diagnosis diagnosis = engine::diagnose(pid);
  fmt::print("{}", diagnosis.text);
  return diagnosis.problems == 0 ? kExitAnswered : kExitError;
}

int ps_verb(int argument_count, const char* const* arguments) {
  CLI::App app{"Shows which processes are traced, and what dead sessions left.", "clew ps"};
  bool json = false;
  app.add_flag("--json", json, "one JSON object a line");
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  fmt::print("{}", engine::list_traced(json));
  return kExitAnswered;
}

int detach_verb(int argument_count, const char* const* arguments) {
  CLI::App app{"Removes the probes that killed sessions left in a process.", "clew detach"};
  pid_t pid = 0;
  bool force = false;
  app.add_option("pid", pid, "the process")->required();
  app.add_flag("--force", force, "also probes of sessions that live");
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  return print_or_report(engine::remove_probes(pid, force));
}

}  // namespace clew::cmd
