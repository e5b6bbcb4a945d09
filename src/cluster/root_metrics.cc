// SPDX-License-Identifier: Apache-2.0
// What a root shows to Prometheus: of each query its counters so far and the gauges of its last
// interval, who counts, and what is missing.
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cluster/answered_rows.h"
#include "cluster/root.h"
#include "output/prometheus.h"

namespace clew::cluster {
namespace {

using output::PrometheusText;

std::string rows_of(const std::string& query, const std::string& answered,
                    const aggregate::Table& table, PrometheusText::Metrics metrics) {
  PrometheusText text(query, metrics);
  const auto rows = AnsweredRows::of(answered, text);
  if (!rows) return "";
  text.begin((*rows)->columns(), output::RowMode::Table);
  return (*rows)->take_all(table) ? text.text() : "";
}

void add_lost(std::string& lines, std::string_view query, std::string_view cause, uint64_t count) {
  lines += fmt::format("clew_query_lost_total{{query={},cause={}}} {}\n",
                       output::metric_label(query), output::metric_label(cause), count);
}

}  // namespace

std::string Root::metrics() const {
  std::string text = fmt::format(
      "# HELP clew_root_leads Whether this root owns the answers.\n"
      "# TYPE clew_root_leads gauge\nclew_root_leads {}\n",
      leads_ ? 1 : 0);
  if (!leads_) return text;
  std::string nodes;
  std::string lost;
  std::string rows;
  for (const auto& [query, asked] : asked_) {
    const Status status = status_of(asked);
    for (const auto& [state, count] :
         {std::pair("armed", status.armed), std::pair("silent", status.silent)}) {
      nodes += fmt::format("clew_query_nodes{{query={},state=\"{}\"}} {}\n",
                           output::metric_label(query), state, count);
    }
    const collect::Losses losses = asked.merge.losses();
    for (const auto& [cause, count] : losses.missed)
      add_lost(lost, query, cause, count);
    for (const auto& [cause, count] : losses.dropped)
      add_lost(lost, query, cause, count);
    // Windows are put together elsewhere (export_panes.h), and events are no numbers.
    const bool are_numbers =
        asked.want.gives != Gives::Windows && asked.want.gives != Gives::Events;
    if (asked.answered.empty() || !are_numbers) continue;
    if (asked.merge.total()) {
      rows +=
          rows_of(query, asked.answered, *asked.merge.total(), PrometheusText::Metrics::Counters);
    }
    const std::vector<PaneTable> given = asked.merge.given();
    if (!given.empty())
      rows += rows_of(query, asked.answered, *given.back().table, PrometheusText::Metrics::Gauges);
  }
  if (!nodes.empty()) {
    text += "# HELP clew_query_nodes Nodes of a query.\n# TYPE clew_query_nodes gauge\n" + nodes;
  }
  if (!lost.empty()) {
    text +=
        "# HELP clew_query_lost_total What its answer lacks, by cause.\n"
        "# TYPE clew_query_lost_total counter\n" +
        lost;
  }
  return text + rows;
}

}  // namespace clew::cluster
