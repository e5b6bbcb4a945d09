// SPDX-License-Identifier: Apache-2.0
#include "cluster/export_panes.h"

#include <fmt/format.h>

#include "output/metric_rows.h"
#include "stream/pane.h"

namespace clew::cluster {
namespace {

output::OtlpAbout about(const Control& want, const std::string& version) {
  output::OtlpAbout about{.query = want.query, .version = version, .revision = want.revision};
  if (std::string service = output::service_name(want.name_patterns); !service.empty())
    about.resource.emplace_back("service.name", std::move(service));
  return about;
}

}  // namespace

void ExportPanes::take(const GivenPane& given) {
  if (given.answered.empty()) return;
  One& one = known(given);
  if (!one.rows) return;
  const stream::Panes panes{.epoch_ns = given.want.epoch_ns, .width_ns = given.want.width_ns};
  const auto number = static_cast<uint64_t>(given.pane);
  if (one.otlp) one.otlp->set_mark(number, given.is_known);
  const auto taken = one.rows->take(
      given.table,
      {.number = number, .begin_ns = panes.begin(given.pane), .end_ns = panes.end(given.pane)});
  if (!taken) {
    notes_.push_back(
        fmt::format("query {} is not exported: {}", given.want.query, taken.error().message));
  }
}

// A name may be another query's by now.
ExportPanes::One& ExportPanes::known(const GivenPane& given) {
  const auto found = by_query_.find(given.want.query);
  if (found != by_query_.end() && found->second.revision == given.want.revision)
    return found->second;
  if (found != by_query_.end()) end(given.want.query);
  One& one = by_query_[given.want.query];
  one.revision = given.want.revision;
  if (const auto begun = begin(one, given); !begun) {
    one.rows.reset();
    notes_.push_back(
        fmt::format("query {} is not exported: {}", given.want.query, begun.error().message));
  }
  return one;
}

Expected<void> ExportPanes::begin(One& one, const GivenPane& given) {
  std::vector<output::RowSink*> sinks;
  if (options_.otlp != nullptr && given.want.is_standing) {
    one.otlp =
        std::make_unique<output::OtlpSink>(about(given.want, options_.version), *options_.otlp);
    sinks.push_back(one.otlp.get());
  }
  if (options_.with_windows && given.want.gives == Gives::Windows) {
    one.windows = std::make_unique<output::PrometheusRows>(given.want.query);
    sinks.push_back(one.windows.get());
  }
  if (sinks.empty()) return {};
  one.sinks = std::make_unique<output::FanOut>(std::move(sinks));
  one.rows = CLEW_TRY(AnsweredRows::of(given.answered, *one.sinks));
  CLEW_TRY(output::check_metrics("an export of metrics", one.rows->columns()));
  one.sinks->begin(one.rows->columns(), output::RowMode::Table);
  return {};
}

void ExportPanes::end(const std::string& query) {
  const auto found = by_query_.find(query);
  if (found == by_query_.end()) return;
  if (found->second.rows) {
    collect::Losses losses;
    found->second.rows->finish(losses);
    found->second.sinks->finish(losses);
  }
  by_query_.erase(found);
}

void ExportPanes::forget(const std::string& query) {
  by_query_.erase(query);
  if (options_.otlp != nullptr) options_.otlp->forget(query);
}

void ExportPanes::finish() {
  while (!by_query_.empty())
    end(by_query_.begin()->first);
}

std::optional<Pane> ExportPanes::done(const std::string& query) const {
  const auto found = by_query_.find(query);
  if (options_.otlp == nullptr || found == by_query_.end() || !found->second.otlp)
    return std::nullopt;
  const auto mark = options_.otlp->done(query, found->second.revision);
  if (!mark) return std::nullopt;
  return static_cast<Pane>(*mark);
}

std::string ExportPanes::metrics() const {
  std::string text;
  for (const auto& [query, one] : by_query_) {
    if (one.windows && one.rows) text += one.windows->text();
  }
  return text;
}

}  // namespace clew::cluster
