// SPDX-License-Identifier: Apache-2.0
// What the store of a root has: its queries, and the answer of one, as whoever asked it got it.
// Also beside a root that writes.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "cluster/store.h"
#include "output/row_sink.h"

namespace clew::cluster {

// A row for each query: its name, how far it is, its intervals, its text.
Expected<void> list_results(Store& store, output::RowSink& sink);

// The rows of all intervals, or of their sum where the query has none. NotFound: no query is called
// so. `accept` as in engine::Request.
Expected<void> show_results(Store& store, const std::string& query, output::RowSink& sink,
                            const std::function<Expected<void>(output::Columns)>& accept);

}  // namespace clew::cluster
