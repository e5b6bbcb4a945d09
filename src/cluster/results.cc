// SPDX-License-Identifier: Apache-2.0
#include "cluster/results.h"

#include <array>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "aggregate/table_bytes.h"
#include "base/nearest.h"
#include "cluster/answered_rows.h"
#include "cluster/clock.h"
#include "cluster/gap_texts.h"
#include "query/parse.h"
#include "stream/pane.h"

namespace clew::cluster {
namespace {

using aggregate::Column;
using aggregate::ColumnType;
using aggregate::Value;

std::string name_of(const AnswerSummary& summary) {
  switch (summary.phase) {
    case Phase::Installing:
    case Phase::Running:
      return summary.is_standing ? "standing" : "running";
    case Phase::Draining:
      return "ending";
    case Phase::Done:
      return "done";
    case Phase::Failed:
      return "failed";
  }
  return "";
}

// Those of a part; the first one says which there are. `unread`: intervals that cannot be read.
void give_panes(const AnswerPart& part, AnsweredRows& rows, std::vector<std::string>& unread) {
  const stream::Panes panes{.epoch_ns = part.want.epoch_ns, .width_ns = part.want.width_ns};
  const bool is_over = part.phase == Phase::Done;
  for (const AnswerPane& one : part.panes) {
    const auto number = static_cast<uint64_t>(one.pane - part.begun) + 1;
    const auto table = aggregate::table_of(one.table);
    const auto taken =
        table ? rows.take(*table, {.number = number,
                                   .partial = one.pane == part.begun ||
                                              (is_over && one.pane == part.given.last) ||
                                              has_gap(part.gaps, one.pane),
                                   .begin_ns = panes.begin(one.pane),
                                   .end_ns = panes.end(one.pane)})
              : Expected<void>(tl::unexpected(table.error()));
    if (!taken)
      unread.push_back(
          fmt::format("interval {}, which cannot be read: {}", number, taken.error().message));
  }
}

// What was asked for is not among what there is.
Expected<void> check_intervals(const AnswerPart& part, const ResultsWanted& wanted) {
  if (part.want.gives != Gives::Panes || !part.panes.empty()) return {};
  if (part.given == PaneRange{}) return fail(ErrorCode::NotFound, "it has no interval yet");
  const auto first = static_cast<uint64_t>(part.given.first - part.begun) + 1;
  const auto last = static_cast<uint64_t>(part.given.last - part.begun) + 1;
  if (wanted.first <= last && wanted.last >= first) return {};
  const bool is_behind = wanted.first > last;
  return fail(ErrorCode::NotFound,
              fmt::format("interval {} of '{}' is not there: {} to {} are; the nearest is {}",
                          is_behind ? wanted.first : wanted.last, wanted.query, first, last,
                          is_behind ? last : first));
}

// Of all nodes.
Expected<collect::Losses> all_losses_of(const AnswerPart& part) {
  collect::Losses losses = CLEW_TRY(aggregate::table_of(part.losses)).losses;
  losses.lost.insert(losses.lost.end(), part.lost.begin(), part.lost.end());
  const stream::Panes panes{.epoch_ns = part.want.epoch_ns, .width_ns = part.want.width_ns};
  // Where intervals have numbers.
  std::optional<Pane> first;
  if (part.want.gives == Gives::Panes) first = part.begun;
  for (std::string& lost : texts_of(part.gaps, panes, first))
    losses.lost.push_back(std::move(lost));
  return losses;
}

// "2026-11-30 06:12:00", of here.
std::string date_and_time(int64_t time_ns) {
  const time_t seconds = time_ns / kSecond;
  tm parts{};
  std::array<char, 32> text{};
  if (time_ns != 0 && localtime_r(&seconds, &parts) != nullptr)
    (void)std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

// What was asked for and has gone from the store.
std::optional<std::string> forgotten_text(const AnswerPart& part, const ResultsWanted& wanted) {
  const uint64_t gone = static_cast<uint64_t>(part.given.first - part.begun);
  if (part.want.gives == Gives::AtEnd || gone == 0 || wanted.first > gone) return std::nullopt;
  const stream::Panes panes{.epoch_ns = part.want.epoch_ns, .width_ns = part.want.width_ns};
  const std::string from = date_and_time(panes.begin(part.given.first));
  if (part.want.gives != Gives::Panes) return "what was before " + from + " is not kept";
  return fmt::format("intervals 1 to {} are not kept: there is something from {} on", gone, from);
}

tl::unexpected<Error> no_query(Answers& answers, const std::string& query) {
  std::vector<std::string> names;
  if (const auto all = answers.list()) {
    for (const AnswerSummary& one : *all)
      names.push_back(one.query);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string near = nearest_name(query, views);
  return fail(ErrorCode::NotFound, "no query '" + query + "' is there" +
                                       (near.empty() ? "; 'clew results' without a name lists them"
                                                     : "; did you mean '" + near + "'?"));
}

}  // namespace

Expected<void> list_results(Answers& answers, output::RowSink& sink) {
  const std::array<Column, 7> columns = {{{.name = "query", .type = ColumnType::String},
                                          {.name = "state", .type = ColumnType::String},
                                          {.name = "from", .type = ColumnType::String},
                                          {.name = "to", .type = ColumnType::String},
                                          {.name = "intervals"},
                                          {.name = "refused", .type = ColumnType::String},
                                          {.name = "text", .type = ColumnType::String}}};
  const std::vector<AnswerSummary> all = CLEW_TRY(answers.list());
  sink.begin(columns, output::RowMode::Table);
  for (const AnswerSummary& one : all) {
    const std::array<Value, 7> row = {one.query,
                                      name_of(one),
                                      date_and_time(one.begun_ns),
                                      date_and_time(one.given_ns),
                                      static_cast<int64_t>(one.intervals),
                                      one.refused.substr(0, one.refused.find('\n')),
                                      one.text};
    sink.row(row);
  }
  sink.finish({});
  sink.flush();
  return {};
}

Expected<void> show_results(Answers& answers, const ResultsWanted& wanted, output::RowSink& sink) {
  auto part = answers.read(wanted.query, wanted.first, wanted.last);
  if (!part && part.error().code == ErrorCode::NotFound) return no_query(answers, wanted.query);
  if (!part) return tl::unexpected(part.error());
  if (part->answered.empty())
    return fail(ErrorCode::NotFound, "no node has answered '" + wanted.query + "'");
  const bool are_some = wanted.first != 1 || wanted.last != std::numeric_limits<uint64_t>::max();
  if (are_some && (part->want.gives == Gives::Windows || part->want.gives == Gives::Events)) {
    return fail(ErrorCode::InvalidQuery,
                "windows and events are put together from all that was sent: of this query no "
                "intervals can be chosen");
  }
  if (are_some) CLEW_TRY(check_intervals(*part, wanted));
  const query::SourcePlaces places =
      CLEW_TRY(query::places_of_sources({.name = "query", .text = part->want.text}));
  const auto rows = CLEW_TRY(AnsweredRows::of(part->answered, sink, places.every_ns.has_value()));
  CLEW_TRY(wanted.accept(rows->columns()));
  sink.begin(rows->columns(), rows->mode());
  if (!part->total.empty()) {
    const aggregate::Table total = CLEW_TRY(aggregate::table_of(part->total));
    CLEW_TRY(rows->take_all(total));
  }
  std::vector<std::string> unread;
  give_panes(*part, *rows, unread);
  while (!part->is_last) {
    const uint64_t next = static_cast<uint64_t>(part->panes.back().pane - part->begun) + 2;
    part = CLEW_TRY(answers.read(wanted.query, next, wanted.last));
    give_panes(*part, *rows, unread);
  }
  collect::Losses losses = CLEW_TRY(all_losses_of(*part));
  losses.lost.insert(losses.lost.end(), unread.begin(), unread.end());
  if (const auto forgotten = forgotten_text(*part, wanted)) losses.lost.push_back(*forgotten);
  rows->finish(losses);
  sink.finish(losses);
  sink.flush();
  return {};
}

}  // namespace clew::cluster
