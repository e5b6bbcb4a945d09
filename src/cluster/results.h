// SPDX-License-Identifier: Apache-2.0
// What there is of a cluster's answers, later: the queries, and the answer of one, as whoever asked
// it got it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "base/error.h"
#include "cluster/answers.h"
#include "output/row_sink.h"

namespace clew::cluster {

// A row for each query: its name, how far it is, from when to when it has intervals and how many,
// who does not answer it, its text.
Expected<void> list_results(Answers& answers, output::RowSink& sink);

struct ResultsWanted {
  std::string query;
  uint64_t first = 1;  // Of the intervals.
  uint64_t last = std::numeric_limits<uint64_t>::max();
  std::function<Expected<void>(output::Columns)> accept;  // As in engine::Request.
};

// The rows of the intervals, or of their sum where the query has none. NotFound: no query is called
// so.
Expected<void> show_results(Answers& answers, const ResultsWanted& wanted, output::RowSink& sink);

}  // namespace clew::cluster
