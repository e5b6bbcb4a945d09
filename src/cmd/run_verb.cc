// SPDX-License-Identifier: Apache-2.0
// clew run: answers a query.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cluster/ask_cluster.h"
#include "cluster/clock.h"
#include "cluster/signing.h"
#include "cluster/subject.h"
#include "cmd/answer_here.h"
#include "cmd/cluster_arguments.h"
#include "cmd/console.h"
#include "cmd/duration.h"
#include "cmd/graph_files.h"
#include "cmd/outputs.h"
#include "cmd/parse_arguments.h"
#include "cmd/percent.h"
#include "cmd/process_options.h"
#include "cmd/request.h"
#include "cmd/verbs.h"
#include "engine/run.h"
#include "output/sinks.h"

namespace clew::cmd {
namespace {

struct RunArguments {
  RequestArguments request;
  ClusterArguments cluster;
  std::vector<std::string> on;
  std::string wait_text;
  std::string stand;
  std::string sign_with;
  std::string for_text;
  std::string every_text;
  std::string overhead_text;
  std::string idle_text;
  OutputArguments output;
  bool quiet = false;
  std::string spill;
  std::string from;
  std::vector<std::string> graphs;
  std::string graph_of{output::name_of(output::GraphChoice::Slowest)};
};

void declare(CLI::App& app, RunArguments& arguments) {
  declare_request(app, arguments.request);
  app.add_option("--for", arguments.for_text, "end after this time: 10s, 500ms, 2m")
      ->check(duration());
  app.add_option("--every", arguments.every_text, "a partial answer each interval")
      ->check(duration());
  auto* const overhead =
      app.add_option("--max-overhead", arguments.overhead_text,
                     "what probes may take of each process's CPU time, like 3%: the functions that "
                     "take most are taken out first, and named")
          ->check(percent())
          ->excludes(app.get_option("--copies"));
  auto* const idle =
      app.add_option("--idle", arguments.idle_text,
                     "end when nothing was answered, or nobody has read it, for this time: 10m")
          ->check(duration());
  declare_outputs(app, arguments.output);
  declare_metrics(app, arguments.output.metrics);
  auto* spill = app.add_option("--spill", arguments.spill,
                               "write the events to this file, and answer from there");
  auto* from = app.add_option("--from", arguments.from, "ask such a file instead of processes");
  from->excludes(spill);
  from->excludes(overhead)->excludes(idle);
  for (const char* option : {"--command", "--for", "--every"})
    from->excludes(app.get_option(option));
  for (const char* option : kProcessOptions)
    from->excludes(app.get_option(option));
  CLI::Option* const url = declare_cluster(app, arguments.cluster);
  for (const char* option :
       {"--command", "--spill", "--from", "--follow", "--copies", "--max-overhead", "--idle"})
    url->excludes(app.get_option(option));
  for (const std::string_view option : kProcessOptions)
    if (option != "--name") url->excludes(app.get_option(std::string(option)));
  app.add_option("--on", arguments.on,
                 "ask the nodes of the cluster with this label: zone=a; may be given several times")
      ->allow_extra_args(false)
      ->needs(url);
  app.add_option("--wait", arguments.wait_text,
                 "for all nodes to count, at most so long (1s): later ones join the answer")
      ->check(duration())
      ->needs(url);
  auto* const stand = app.add_option(
      "--stand", arguments.stand,
      "have the query run on under this name, and leave: 'clew results NAME' has what it gives, "
      "and with --end ends it; a name is for once");
  stand->needs(url);
  // Who leaves gives no answer.
  for (const char* option : {"--for", "--output", "--otlp", "--prometheus"})
    stand->excludes(app.get_option(option));
  app.add_option("--sign", arguments.sign_with,
                 "the key of who asks (clew key), where nodes want to know that")
      ->needs(url);
  auto* graph =
      app.add_option("--graph", arguments.graphs,
                     "draw one request of a query with joins: threads, events and what was handed "
                     "over; to a file .json, .dot or .svg; may be given several times")
          ->allow_extra_args(false);
  app.add_option("--graph-of", arguments.graph_of,
                 "which of those that gave a row: slowest (default), first, last")
      ->needs(graph)
      ->check(CLI::IsMember({"slowest", "first", "last"}).description(""));
  app.add_flag("-q,--quiet", arguments.quiet, "only the answer and errors");
}

Expected<void> answer_over_cluster(const RunArguments& arguments, const engine::Request& request,
                                   Outputs& outputs) {
  if (!arguments.graphs.empty()) {
    return fail(ErrorCode::InvalidQuery,
                "--graph draws joins by cause, which no cluster answers yet");
  }
  std::optional<cluster::SigningKey> key;
  if (!arguments.sign_with.empty()) key = CLEW_TRY(cluster::SigningKey::read(arguments.sign_with));
  int64_t wait_ns = cluster::kSecond;
  if (!arguments.wait_text.empty())
    wait_ns = static_cast<int64_t>(CLEW_TRY(parse_duration(arguments.wait_text)));
  const cluster::ClusterRequest asked{
      .query = request,
      .tenant = arguments.cluster.tenant,
      .labels = CLEW_TRY(labels_of(arguments.on)),
      .connect = [&arguments] { return connect(arguments.cluster, "run"); },
      .install_ns = wait_ns,
      .url = shown_url(arguments.cluster),
      .name = arguments.stand,
      .key = key ? &*key : nullptr};
  constexpr size_t kNameMost = 64;
  const bool is_named = arguments.stand.empty() || (cluster::check_name(arguments.stand) &&
                                                    arguments.stand.size() <= kNameMost);
  if (!is_named) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("'{}' is no name of a query: it has letters, digits, _ and -, {} of "
                            "them at most",
                            arguments.stand, kNameMost));
  }
  const FileDescriptor stop =
      CLEW_TRY(signals_as_descriptor(outputs.size() > 1 ? ReaderGone::GoesOn : ReaderGone::Ends));
  Console console(arguments.quiet);
  if (!arguments.stand.empty()) return cluster::stand(asked, stop.get(), console);
  return cluster::ask_cluster(asked, stop.get(), outputs.sink(), console);
}

Expected<int> run_query(const RunArguments& arguments) {
  engine::Request request = CLEW_TRY(request_of(arguments.request));
  if (!arguments.for_text.empty()) request.for_ns = CLEW_TRY(parse_duration(arguments.for_text));
  if (!arguments.every_text.empty()) {
    request.every_ns = CLEW_TRY(parse_duration(arguments.every_text));
  }
  if (!arguments.overhead_text.empty())
    request.max_overhead = CLEW_TRY(parse_percent(arguments.overhead_text));
  if (!arguments.idle_text.empty()) request.idle_ns = CLEW_TRY(parse_duration(arguments.idle_text));
  request.spill_path = arguments.spill;
  request.from_path = arguments.from;
  OutputArguments places = arguments.output;
  places.about = about(request, arguments.request.command);
  places.query_name = metric_query_name(request.text.name);
  if (request.idle_ns) places.patience = std::chrono::nanoseconds(*request.idle_ns);
  Outputs outputs;
  CLEW_TRY(outputs.open(places));
  request.is_unread = [&outputs] { return outputs.is_unread(); };
  GraphFiles graphs;
  CLEW_TRY(graphs.open(arguments.graphs, arguments.output.files));
  if (!arguments.graphs.empty()) request.graph = graphs.request(arguments.graph_of, places.about);
  request.accept = [&outputs](output::Columns columns) { return outputs.accept(columns); };
  const Expected<void> answered = arguments.cluster.url.empty()
                                      ? answer_here(request, {.is_quiet = arguments.quiet}, outputs)
                                      : answer_over_cluster(arguments, request, outputs);
  int status = answered ? kExitAnswered : report(answered.error());
  for (const Error& error : outputs.close(answered ? nullptr : &answered.error()))
    status = report(error);
  for (const Error& error : graphs.write(arguments.quiet))
    status = report(error);
  return status;
}

}  // namespace

int run_verb(int argument_count, const char* const* arguments) {
  CLI::App app{"Answers a query about running processes.", "clew run"};
  RunArguments parsed;
  declare(app, parsed);
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  const Expected<int> status = run_query(parsed);
  return status ? *status : report(status.error());
}

}  // namespace clew::cmd
