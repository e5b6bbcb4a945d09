// SPDX-License-Identifier: Apache-2.0
// A query over events that an earlier session has written to a file (`--spill`), instead of over
// processes.
#pragma once

#include "base/error.h"
#include "engine/run.h"
#include "output/row_sink.h"

namespace clew::engine {

// Request::from_path is the file; processes are not looked at. What is damaged or cut off is in the
// losses, with its place. Ends early when `stop_descriptor` is readable. Errors: InvalidQuery for a
// file that is none, for a source or an expression that it does not hold; Io.
Expected<void> replay(const Request& request, int stop_descriptor, output::RowSink& sink);

}  // namespace clew::engine
