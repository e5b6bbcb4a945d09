// SPDX-License-Identifier: Apache-2.0
// A query over snaps of the flight recorder (recording("app.snap").line): what a process ran before
// it crashed, with the language's own means. No process is touched.
#pragma once

#include <string>

#include "base/error.h"
#include "engine/run.h"
#include "output/row_sink.h"
#include "query/diagnostic.h"

namespace clew::engine {

// Whether a recording is among the sources of the text. False where it is no query: that is told by
// who answers it.
bool asks_recording(const query::Text& text);

// Ends early when `stop_descriptor` is readable. What cannot be reconstructed is in the losses.
// Errors: InvalidQuery; those of recorder::read_snap.
Expected<void> ask_recording(const Request& request, int stop_descriptor, output::RowSink& sink,
                             Notices& notices);

// The query, what is in its snaps, and the plan.
Expected<std::string> explain_recording(const Request& request);

}  // namespace clew::engine
