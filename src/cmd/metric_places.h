// SPDX-License-Identifier: Apache-2.0
// --otlp and --prometheus: where an answer goes beside its files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "metrics/otlp_push.h"
#include "metrics/server.h"
#include "output/otlp.h"
#include "output/prometheus.h"
#include "output/sinks.h"

namespace clew::cmd {

struct MetricArguments {
  std::string otlp;
  std::vector<std::string> headers;
  std::string prometheus;
};

void declare_metrics(CLI::App& app, MetricArguments& arguments);

// Null: nothing is pushed.
Expected<std::unique_ptr<metrics::OtlpPush>> open_push(const MetricArguments& arguments);
// What waits at the end has so long.
inline constexpr int64_t kPushPatienceNs = 5'000'000'000;

// Of one answer.
class MetricPlaces {
 public:
  MetricPlaces();
  ~MetricPlaces();
  MetricPlaces(const MetricPlaces&) = delete;
  MetricPlaces& operator=(const MetricPlaces&) = delete;

  // `name` is the query's.
  Expected<void> open(const MetricArguments& arguments, const output::About& about,
                      const std::string& name, output::ByteSink& notes);
  [[nodiscard]] std::vector<output::RowSink*> sinks() const;
  Expected<void> accept(output::Columns columns) const;
  // What was lost, an error for each place.
  [[nodiscard]] std::vector<Error> close();

 private:
  class Pushed;
  class Fetched;
  std::unique_ptr<Pushed> pushed_;
  std::unique_ptr<Fetched> fetched_;
};

// A file's name without its end, for a query that is in one; else "query".
[[nodiscard]] std::string metric_query_name(const std::string& text_name);

}  // namespace clew::cmd
