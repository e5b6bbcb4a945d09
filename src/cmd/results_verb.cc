// SPDX-License-Identifier: Apache-2.0
// clew results: answers of a cluster's queries, later and from anywhere.
#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cluster/ask_cluster.h"
#include "cluster/clock.h"
#include "cluster/remote_answers.h"
#include "cluster/results.h"
#include "cluster/signing.h"
#include "cluster/store_answers.h"
#include "cmd/cluster_arguments.h"
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
  ClusterArguments cluster;
  std::string intervals;
  bool ends = false;
  std::string sign_with;
  OutputArguments output;
};

// "A..B", "A.." or "A".
Expected<void> read_intervals(const std::string& text, cluster::ResultsWanted& wanted) {
  if (text.empty()) return {};
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](uint64_t& value) {
    const auto read = std::from_chars(at, end, value);
    at = read.ptr;
    return read.ec == std::errc{} && value != 0;
  };
  bool is_right = number(wanted.first);
  if (is_right && at == end) {
    wanted.last = wanted.first;
  } else {
    is_right = is_right && text.compare(static_cast<size_t>(at - text.data()), 2, "..") == 0;
    if (is_right) at += 2;
    if (is_right && at != end) is_right = number(wanted.last) && at == end;
  }
  if (is_right && wanted.first <= wanted.last) return {};
  return fail(
      ErrorCode::InvalidQuery,
      fmt::format("intervals are written 5, 5..9 or 5.., counted from 1 on, and not '{}'", text));
}

// Answers, and what they are read from.
struct Place {
  std::unique_ptr<cluster::Store> store;
  std::unique_ptr<cluster::Bus> bus;
  cluster::MachineClock clock;
  std::unique_ptr<cluster::Answers> answers;
};

Expected<std::unique_ptr<Place>> find_answers(const ResultsArguments& arguments) {
  auto place = std::make_unique<Place>();
  if (!arguments.store.empty()) {
    place->store = CLEW_TRY(cluster::Store::open_to_read(arguments.store));
    place->answers = std::make_unique<cluster::StoreAnswers>(*place->store);
    return place;
  }
  place->bus = CLEW_TRY(connect(arguments.cluster, "results"));
  auto remote = std::make_unique<cluster::RemoteAnswers>(
      *place->bus, place->clock, arguments.cluster.tenant, shown_url(arguments.cluster));
  remote->on_wait([](const std::string& text) { Console(false).made(text); });
  CLEW_TRY(remote->begin());
  place->answers = std::move(remote);
  return place;
}

Expected<int> end(const ResultsArguments& arguments) {
  std::optional<cluster::SigningKey> key;
  if (!arguments.sign_with.empty()) key = CLEW_TRY(cluster::SigningKey::read(arguments.sign_with));
  const auto bus = CLEW_TRY(connect(arguments.cluster, "results"));
  const std::string ended = CLEW_TRY(cluster::end_query(*bus, {.query = {},
                                                               .tenant = arguments.cluster.tenant,
                                                               .connect = {},
                                                               .url = shown_url(arguments.cluster),
                                                               .name = arguments.query,
                                                               .key = key ? &*key : nullptr}));
  Console(false).made(ended);
  return kExitAnswered;
}

Expected<int> show(const ResultsArguments& arguments) {
  cluster::ResultsWanted wanted{.query = arguments.query, .accept = {}};
  CLEW_TRY(read_intervals(arguments.intervals, wanted));
  const auto place = CLEW_TRY(find_answers(arguments));
  OutputArguments places = arguments.output;
  places.about = output::about_here(arguments.query);
  Outputs outputs;
  CLEW_TRY(outputs.open(places));
  wanted.accept = [&outputs](output::Columns columns) { return outputs.accept(columns); };
  const Expected<void> shown = arguments.query.empty()
                                   ? cluster::list_results(*place->answers, outputs.sink())
                                   : cluster::show_results(*place->answers, wanted, outputs.sink());
  int status = shown ? kExitAnswered : report(shown.error());
  for (const Error& error : outputs.close(shown ? nullptr : &shown.error()))
    status = report(error);
  return status;
}

}  // namespace

int results_verb(int argument_count, const char* const* arguments) {
  ResultsArguments parsed;
  CLI::App app(
      "Shows what a cluster has answered: its queries, or the answer of one. It is read from a "
      "root's store, or over the bus from the root that leads.",
      "clew results");
  CLI::Option* const query = app.add_option(
      "query", parsed.query, "its name, as run --cluster has said it; none: list all");
  CLI::Option* const store =
      app.add_option("--store", parsed.store, "the folder of the root's --store");
  CLI::Option* const url = declare_cluster(app, parsed.cluster)->excludes(store);
  app.add_option("--interval", parsed.intervals, "of its intervals these alone: 5, 5..9 or 5..")
      ->needs(query);
  app.add_flag("--end", parsed.ends, "ends the query, whoever has asked it")
      ->needs(query)
      ->needs(url);
  app.add_option("--sign", parsed.sign_with,
                 "to end it, the key of who asked it (clew key), where nodes want to know that")
      ->needs(url);
  declare_outputs(app, parsed.output);
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  if (store->count() + url->count() == 0)
    return wrong_usage(app, "where the answers are is missing: --cluster URL, or --store FOLDER");
  const Expected<int> status = parsed.ends ? end(parsed) : show(parsed);
  return status ? *status : report(status.error());
}

}  // namespace clew::cmd
