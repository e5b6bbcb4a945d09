// SPDX-License-Identifier: Apache-2.0
// clew list, explain, doctor, ps, detach: print what the engine knows.
#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cluster/certificate.h"
#include "cmd/cluster_arguments.h"
#include "cmd/console.h"
#include "cmd/duration.h"
#include "cmd/parse_arguments.h"
#include "cmd/process_options.h"
#include "cmd/request.h"
#include "cmd/verbs.h"
#include "doctor/doctor.h"
#include "engine/explain.h"
#include "engine/inventory.h"
#include "engine/kernel/kernel_list.h"
#include "engine/recording/ask_recording.h"
#include "engine/usdt_sites.h"

namespace clew::cmd {
namespace {

int print_or_report(const Expected<std::string>& text) {
  if (!text) return report(text.error());
  fmt::print("{}", *text);
  return kExitAnswered;
}

}  // namespace

namespace {

struct ListArguments {
  engine::ListRequest functions;
  std::vector<std::string> vocabularies;
  bool fields = false;
  bool values = false;
  bool tracepoints = false;
  bool kernel = false;
  bool usdt = false;
  bool processes = false;
};

void declare_list(CLI::App& app, ListArguments& arguments) {
  engine::ListRequest& functions = arguments.functions;
  app.add_option("pattern", functions.pattern,
                 "module!function, or a tracepoint, with * ? [..]; all by default");
  declare_processes(app, functions.processes, "functions of");
  auto* const file =
      app.add_option("--file", functions.file, "functions of this program or library");
  for (const char* option : kProcessOptions)
    file->excludes(app.get_option(option));
  app.add_flag("--types", functions.types, "names and types of arguments, from debug information");
  app.add_flag("--sites", functions.sites,
               "also whether entries and exits can be taken, and bear others' uprobes");
  app.add_flag("--json", functions.json, "one JSON object a line");
  auto* fields = app.add_flag("--fields", arguments.fields, "what events export, and which do");
  auto* values = app.add_flag("--values", arguments.values,
                              "strings, addresses and named numbers that queries know");
  auto* tracepoints =
      app.add_flag("--tracepoints", arguments.tracepoints, "named tracepoints of the vocabulary");
  auto* kernel = app.add_flag("--kernel", arguments.kernel,
                              "system calls, tracepoints and functions of the kernel");
  auto* usdt = app.add_flag("--usdt", arguments.usdt,
                            "static probes (USDT) by \"provider:name\", of processes or a file");
  for (const char* other :
       {"--types", "--sites", "--fields", "--values", "--tracepoints", "--kernel"})
    usdt->excludes(app.get_option(other));
  auto* processes = app.add_flag("--processes", arguments.processes,
                                 "the processes that may be traced, and whose they are");
  for (CLI::Option* const other : {usdt, fields, values, tracepoints, kernel})
    processes->excludes(other);
  for (const char* other : {"--file", "--types", "--sites"})
    processes->excludes(app.get_option(other));
  for (const char* other : kProcessOptions)
    processes->excludes(app.get_option(other));
  // These are the same for all processes.
  for (CLI::Option* const one : {fields, values, tracepoints, kernel}) {
    for (const char* other : {"--file", "--types", "--sites"})
      one->excludes(app.get_option(other));
    for (const char* other : kProcessOptions)
      one->excludes(app.get_option(other));
  }
  fields->excludes(values)->excludes(tracepoints)->excludes(kernel);
  values->excludes(tracepoints)->excludes(kernel);
  tracepoints->excludes(kernel);
  app.add_option("--vocabulary", arguments.vocabularies,
                 "more files or directories of tracepoints, which are listed without a process");
}

}  // namespace

int list_verb(int argument_count, const char* const* arguments) {
  CLI::App app{"Shows what can be traced: functions, fields, tracepoints.", "clew list"};
  ListArguments parsed;
  declare_list(app, parsed);
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  const engine::ListRequest& functions = parsed.functions;
  const engine::NameRequest names{.pattern = functions.pattern, .json = functions.json};
  if (parsed.fields) return print_or_report(engine::list_fields(names));
  if (parsed.processes) return print_or_report(engine::list_processes(names));
  if (parsed.usdt) return print_or_report(engine::list_usdt(parsed.functions));
  if (parsed.kernel) return print_or_report(engine::list_kernel_events(names));
  std::vector<std::string> vocabularies = default_vocabularies();
  vocabularies.insert(vocabularies.end(), parsed.vocabularies.begin(), parsed.vocabularies.end());
  if (parsed.values) return print_or_report(engine::list_values(names, vocabularies));
  const bool has_program = functions.processes.names_some() || !functions.file.empty();
  const bool names_some =
      !parsed.vocabularies.empty() || engine::names_tracepoints(functions.pattern, vocabularies);
  if (parsed.tracepoints || (!has_program && names_some)) {
    return print_or_report(engine::list_tracepoints(names, vocabularies));
  }
  return print_or_report(engine::list_functions(functions));
}

namespace {

struct ExplainArguments {
  RequestArguments request;
  engine::ExplainOptions options;
  bool run = false;
  std::string for_text;
};

void declare_explain(CLI::App& app, ExplainArguments& arguments) {
  declare_request(app, arguments.request);
  CLI::Option* const programs =
      app.add_flag("--programs", arguments.options.programs, "the probe programs");
  CLI::Option* const code = app.add_flag("--code", arguments.options.code, "their machine code");
  CLI::Option* const run = app.add_flag(
      "--run", arguments.run,
      "answer a query with joins, too, and count the tuples and bytes that requests carry");
  app.add_option("--for", arguments.for_text, "end --run after this time: 10s, 500ms, 2m")
      ->check(duration())
      ->needs(run);
  app.add_flag("--json", arguments.options.json, "the plan, and --run, one JSON object a line")
      ->excludes(programs)
      ->excludes(code);
}

Expected<std::string> explain_query(const ExplainArguments& arguments) {
  engine::Request request = CLEW_TRY(request_of(arguments.request));
  if (!arguments.for_text.empty()) request.for_ns = CLEW_TRY(parse_duration(arguments.for_text));
  if (engine::asks_recording(request.text)) {
    if (!arguments.run && !arguments.options.json) return engine::explain_recording(request);
    return fail(ErrorCode::InvalidQuery, "--run and --json are not of queries over snaps");
  }
  std::string text = CLEW_TRY(engine::explain(request, arguments.options));
  if (!arguments.run) return text;
  const FileDescriptor stop = CLEW_TRY(signals_as_descriptor(ReaderGone::Ends));
  Console console(/*quiet=*/false);
  text += CLEW_TRY(engine::explain_run(request, stop.get(), console, arguments.options.json));
  return text;
}

}  // namespace

int explain_verb(int argument_count, const char* const* arguments) {
  CLI::App app{"Shows how a query would run; changes nothing without --run.", "clew explain"};
  ExplainArguments parsed;
  declare_explain(app, parsed);
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  return print_or_report(explain_query(parsed));
}

namespace {

struct DoctorArguments {
  doctor::Request request;
  doctor::CauseRequest causes{.vocabulary_paths = default_vocabularies()};
  std::vector<std::string> vocabularies;
  std::string id;
  ClusterArguments cluster;
  std::string for_text = "10s";
};

void declare_doctor(CLI::App& app, DoctorArguments& arguments) {
  CLI::Option* const pid = app.add_option("-p,--pid", arguments.request.pid, "also this process")
                               ->check(whole_number(1));
  app.add_flag("--stop", arguments.request.may_stop, "stop it for a moment, to look at its threads")
      ->needs(pid);
  CLI::Option* const cause = app.add_option("--cause", arguments.causes.pid,
                                            "what joins by cause know of this process, alone")
                                 ->check(whole_number(1))
                                 ->excludes(pid);
  app.add_option("--vocabulary", arguments.vocabularies, "more files or directories of tracepoints")
      ->allow_extra_args(false)
      ->needs(cause);
  CLI::Option* const id =
      app.add_option("--id", arguments.id,
                     "trace it, and compare this regular expression in what it writes with the "
                     "same in the question that it was written for")
          ->needs(cause);
  app.add_option("--for", arguments.for_text, "so long: 10s")->check(duration())->needs(id);
  CLI::Option* const cluster =
      app.add_option("--cluster", arguments.cluster.url,
                     "what servers of a cluster let somebody do: one's configuration (a file), or "
                     "nats://HOST:4222 or tls://HOST:4222, which say less, and let this end in or "
                     "not")
          ->excludes(pid)
          ->excludes(cause);
  declare_identity(app, arguments.cluster, cluster);
  app.add_flag("--json", arguments.request.json, "one JSON object a line");
}

Expected<doctor::Diagnosis> diagnose_causes(const DoctorArguments& arguments) {
  doctor::CauseRequest causes = arguments.causes;
  causes.json = arguments.request.json;
  causes.vocabulary_paths.insert(causes.vocabulary_paths.end(), arguments.vocabularies.begin(),
                                 arguments.vocabularies.end());
  if (arguments.id.empty()) return doctor::diagnose_causes(causes);
  const FileDescriptor stop = CLEW_TRY(signals_as_descriptor(ReaderGone::Ends));
  Console console(/*quiet=*/true);
  causes.measure = doctor::MeasureRequest{.id = arguments.id,
                                          .for_ns = CLEW_TRY(parse_duration(arguments.for_text)),
                                          .stop_descriptor = stop.get(),
                                          .notices = &console};
  return doctor::diagnose_causes(causes);
}

// As whom a server knows the certificate (clew:node:n1); else as who looks at results, who may the
// least.
std::string kind_of(const ClusterArguments& cluster) {
  const auto certificate = cluster.certificate_file.empty()
                               ? std::nullopt
                               : cluster::read_certificate(cluster.certificate_file);
  const std::string name = certificate ? certificate->name : "";
  constexpr std::string_view kNode = "clew:node:";
  constexpr std::string_view kRoot = "clew:root:";
  if (name.starts_with(kNode)) return "node " + name.substr(kNode.size());
  if (name.starts_with(kRoot)) return "root " + name.substr(kRoot.size());
  return "results";
}

Expected<doctor::Diagnosis> diagnose(const DoctorArguments& arguments) {
  if (!arguments.cluster.url.empty()) {
    return doctor::diagnose_cluster(
        {.place = arguments.cluster.url,
         .connect = nats_options(arguments.cluster, kind_of(arguments.cluster)),
         .tenant = arguments.cluster.tenant,
         .json = arguments.request.json});
  }
  if (arguments.causes.pid != 0) return diagnose_causes(arguments);
  return doctor::diagnose(arguments.request);
}

}  // namespace

int doctor_verb(int argument_count, const char* const* arguments) {
  CLI::App app{"Checks this machine, and a process, for what tracing needs.", "clew doctor"};
  DoctorArguments parsed;
  declare_doctor(app, parsed);
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  const Expected<doctor::Diagnosis> diagnosis = diagnose(parsed);
  if (!diagnosis) return report(diagnosis.error());
  fmt::print("{}", diagnosis->text);
  return diagnosis->problems == 0 ? kExitAnswered : kExitError;
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
  app.add_option("pid", pid, "the process")->required()->check(whole_number(1));
  app.add_flag("--force", force, "also probes of sessions that live");
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  return print_or_report(engine::remove_probes(pid, force));
}

}  // namespace clew::cmd
