// SPDX-License-Identifier: Apache-2.0
#include "cluster/results.h"

#include <array>
#include <utility>

#include "aggregate/table_bytes.h"
#include "base/nearest.h"
#include "cluster/answered_rows.h"
#include "cluster/node_losses.h"
#include "stream/pane.h"

namespace clew::cluster {
namespace {

using aggregate::Column;
using aggregate::ColumnType;
using aggregate::Value;

std::string name_of(Phase phase) {
  switch (phase) {
    case Phase::Installing:
    case Phase::Running:
      return "running";
    case Phase::Draining:
      return "ending";
    case Phase::Done:
      return "done";
    case Phase::Failed:
      return "failed";
  }
  return "";
}

// Of all nodes.
Expected<collect::Losses> losses_of(const StoredAnswer& stored) {
  collect::Losses losses;
  for (const StoredMember& member : stored.members)
    add_losses(losses, CLEW_TRY(aggregate::table_of(member.losses)).losses, member.node);
  return losses;
}

Expected<void> give_panes(const StoredAnswer& stored, AnsweredRows& rows) {
  const Control& want = stored.query.want;
  const stream::Panes panes{.epoch_ns = want.epoch_ns, .width_ns = want.width_ns};
  const bool is_over = stored.query.phase == Phase::Done;
  for (const StoredPane& one : stored.panes) {
    // Those that are open still may change.
    if (!stored.query.given || one.pane > *stored.query.given) break;
    const aggregate::Table table = CLEW_TRY(aggregate::table_of(one.table));
    CLEW_TRY(
        rows.take(table, {.number = static_cast<uint64_t>(one.pane - stored.panes.front().pane) + 1,
                          .partial = one.pane == stored.panes.front().pane ||
                                     (is_over && one.pane == stored.panes.back().pane),
                          .begin_ns = panes.begin(one.pane),
                          .end_ns = panes.end(one.pane)}));
  }
  return {};
}

tl::unexpected<Error> no_query(Store& store, const std::string& query) {
  std::vector<std::string> names;
  if (const auto all = store.read_all()) {
    for (const StoredAnswer& one : *all)
      names.push_back(one.query.want.query);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string near = nearest_name(query, views);
  return fail(ErrorCode::NotFound, "no query '" + query + "' is in the store" +
                                       (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

}  // namespace

Expected<void> list_results(Store& store, output::RowSink& sink) {
  const std::array<Column, 4> columns = {{{.name = "query", .type = ColumnType::String},
                                          {.name = "state", .type = ColumnType::String},
                                          {.name = "intervals"},
                                          {.name = "text", .type = ColumnType::String}}};
  const std::vector<StoredAnswer> all = CLEW_TRY(store.read_all());
  sink.begin(columns, output::RowMode::Table);
  for (const StoredAnswer& one : all) {
    const std::array<Value, 4> row = {one.query.want.query, name_of(one.query.phase),
                                      static_cast<int64_t>(one.panes.size()), one.query.want.text};
    sink.row(row);
  }
  sink.finish({});
  sink.flush();
  return {};
}

Expected<void> show_results(Store& store, const std::string& query, output::RowSink& sink,
                            const std::function<Expected<void>(output::Columns)>& accept) {
  const auto stored = store.read(query);
  if (!stored && stored.error().code == ErrorCode::NotFound) return no_query(store, query);
  if (!stored) return tl::unexpected(stored.error());
  if (stored->query.answered.empty())
    return fail(ErrorCode::NotFound, "no node has answered '" + query + "'");
  const auto rows = CLEW_TRY(AnsweredRows::of(stored->query.answered, sink));
  CLEW_TRY(accept(rows->columns()));
  sink.begin(rows->columns(), output::RowMode::Table);
  if (stored->query.want.gives != Gives::AtEnd) {
    CLEW_TRY(give_panes(*stored, *rows));
  } else if (stored->total) {
    const aggregate::Table total = CLEW_TRY(aggregate::table_of(*stored->total));
    CLEW_TRY(rows->take_all(total));
  }
  collect::Losses losses = CLEW_TRY(losses_of(*stored));
  rows->finish(losses);
  sink.finish(losses);
  sink.flush();
  return {};
}

}  // namespace clew::cluster
