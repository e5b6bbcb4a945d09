// SPDX-License-Identifier: Apache-2.0
// clew results: answers of a cluster's queries, later.
#include <string>

#include <CLI/CLI.hpp>

#include "cluster/results.h"
#include "cmd/console.h"
#include "cmd/outputs.h"
#include "cmd/parse_arguments.h"
#include "cmd/verbs.h"
#include "output/sinks.h"

namespace clew::cmd {
namespace {

struct ResultsArguments {
  std::string query;
  std::string store;
  OutputArguments output;
};

Expected<int> show(const ResultsArguments& arguments) {
  const auto store = CLEW_TRY(cluster::Store::open_to_read(arguments.store));
  OutputArguments places = arguments.output;
  places.about = output::about_here(arguments.query);
  Outputs outputs;
  CLEW_TRY(outputs.open(places));
  const Expected<void> shown = arguments.query.empty()
                                   ? cluster::list_results(*store, outputs.sink())
                                   : cluster::show_results(*store, arguments.query, outputs.sink(),
                                                           [&outputs](output::Columns columns) {
                                                             return outputs.accept(columns);
                                                           });
  int status = shown ? kExitAnswered : report(shown.error());
  for (const Error& error : outputs.close(shown ? nullptr : &shown.error()))
    status = report(error);
  return status;
}

}  // namespace

int results_verb(int argument_count, const char* const* arguments) {
  ResultsArguments parsed;
  CLI::App app("Shows what a root has in its store: its queries, or the answer of one.",
               "clew results");
  app.add_option("query", parsed.query, "its name, as run --cluster has said it; none: list all");
  app.add_option("--store", parsed.store, "the folder of the root's --store")->required();
  declare_outputs(app, parsed.output);
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  const Expected<int> status = show(parsed);
  return status ? *status : report(status.error());
}

}  // namespace clew::cmd
