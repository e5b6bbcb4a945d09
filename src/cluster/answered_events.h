// SPDX-License-Identifier: Apache-2.0
// The answers of single events, of which nodes send each (answer/event_table.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cluster/answered_rows.h"
#include "output/row_sink.h"
#include "plan/joined.h"
#include "query/query.h"

namespace clew::cluster {

// A row for each, or for each that was joined on its machine. The sink is borrowed.
std::unique_ptr<AnsweredRows> single_events(query::Query query, output::RowSink& sink);

// What is joined here, by the times of all machines. With `has_intervals`, and groups, there is an
// answer for each pane.
std::unique_ptr<AnsweredRows> joined_events(plan::Joined joined, output::RowSink& sink,
                                            bool has_intervals);

}  // namespace clew::cluster
