// SPDX-License-Identifier: Apache-2.0
#include "cluster/answered_rows.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "answer/answer.h"
#include "answer/columns.h"
#include "cluster/answered_events.h"
#include "cluster/to_sink.h"
#include "collect/losses.h"
#include "plan/joined.h"
#include "plan/plan.h"
#include "plan/spread.h"
#include "query/diagnostic.h"
#include "query/parse.h"
#include "session/time_windows.h"

namespace clew::cluster {
namespace {

// Times in tables are of the time of day (query::set_times_ahead).
class Rows final : public AnsweredRows {
 public:
  Rows(query::Query query, output::RowSink& sink)
      : plan_(plan::plain(std::move(query))),
        sink_(sink),
        to_sink_(sink),
        answer_(plan_, 0, to_sink_),
        schema_(answer::schema_of(plan_.query)) {
    if (plan_.query.window) windows_.emplace(plan_.query, 0);
  }

  [[nodiscard]] std::span<const aggregate::Column> columns() const override {
    return answer_.columns();
  }
  Expected<void> take_all(const aggregate::Table& table) override {
    CLEW_TRY(check(table));
    answer_.take(table);
    return {};
  }
  Expected<void> take(const aggregate::Table& table, const output::Interval& pane) override {
    CLEW_TRY(check(table));
    if (windows_) {
      take_windows(table, pane);
      return {};
    }
    answer_.take(table);
    sink_.end_interval(pane);
    return {};
  }
  void finish(collect::Losses& losses) override {
    if (windows_) {
      give(windows_->finish());
      collect::count_cause(losses.dropped, collect::kDroppedLate, windows_->late());
      collect::count_cause(losses.dropped, collect::kDroppedWindowRows, windows_->dropped());
    }
    to_sink_.forget_version();
    answer_.end(losses);
  }

 private:
  // What was known of types where it was counted, and is not here, may show in the columns.
  [[nodiscard]] Expected<void> check(const aggregate::Table& table) const {
    const aggregate::TableSchema& schema = table.schema();
    const bool fits =
        schema.keys.size() == schema_.keys.size() &&
        (!windows_ || schema.keys[0].type == schema_.keys[0].type) &&
        std::equal(schema.aggregates.begin(), schema.aggregates.end(), schema_.aggregates.begin(),
                   schema_.aggregates.end(),
                   [](const auto& one, const auto& other) { return one.spec == other.spec; });
    if (fits) return {};
    return fail(ErrorCode::Refused, "its table is not as the nodes have said");
  }
  // Of the first pane a part was missed.
  void take_windows(const aggregate::Table& table, const output::Interval& pane) {
    const bool is_first = !std::exchange(has_begun_, true);
    if (is_first) windows_->begin(pane.end_ns);
    aggregate::Table ours(schema_);
    for (const auto& [key, cells] : table.cells())
      ours.add(key, cells);
    windows_->add(ours);
    // The session may have ended anywhere in the last one.
    const bool is_last = pane.partial && !is_first;
    give(windows_->advance(is_last ? pane.begin_ns : pane.end_ns));
  }
  void give(const std::vector<stream::Given>& given) {
    if (given.empty()) return;
    for (const stream::Given& each : given) {
      to_sink_.set_version(each.version);
      answer_.take(each.table);
    }
    if (!answer_.waits_for_end()) sink_.end_interval(windows_->interval_of(given));
  }

  plan::Plan plan_;
  output::RowSink& sink_;
  ToSink to_sink_;
  answer::Answer answer_;
  aggregate::TableSchema schema_;
  std::optional<session::TimeWindows> windows_;
  bool has_begun_ = false;
};

}  // namespace

Expected<std::unique_ptr<AnsweredRows>> AnsweredRows::of(const std::string& answered,
                                                         output::RowSink& sink,
                                                         bool has_intervals) {
  const query::Text text{.name = "answer", .text = answered};
  auto query = query::parse_any(text, {});
  if (!query) {
    return fail(ErrorCode::Refused, fmt::format("what the nodes answer cannot be read here: {}",
                                                query.error().message));
  }
  if (plan::joins_between_hosts(*query)) {
    auto joined = plan::separate(*query, {}, query::Reporter(text));
    if (joined) return joined_events(std::move(*joined), sink, has_intervals);
    return fail(ErrorCode::Refused,
                "what the nodes answer cannot be joined here: " + joined.error().message);
  }
  if (plan::sends_events(*query)) return single_events(std::move(*query), sink);
  return std::make_unique<Rows>(std::move(*query), sink);
}

bool answers_events(const std::string& answered) {
  const auto query = query::parse_any({.name = "answer", .text = answered}, {});
  return query && plan::sends_events(*query);
}

}  // namespace clew::cluster
