// SPDX-License-Identifier: Apache-2.0
// What pictures of a request say of its parts, in one line each; not escaped. Private to the
// folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "output/request_graph.h"

namespace clew::output {

[[nodiscard]] std::string duration_text(int64_t ns);
// "shop 17", "worker 18"
[[nodiscard]] std::string process_text(const GraphLane& lane);
[[nodiscard]] std::string thread_text(const GraphLane& lane);
// The tracepoint, or "work", or the source where that is not known, and "arg0=5" for each value.
[[nodiscard]] std::string event_name(const GraphEvent& event);
[[nodiscard]] std::string event_text(const GraphEvent& event);
// The same with what is long in it cut, but names.
[[nodiscard]] std::string event_label(const GraphEvent& event);
// "explicit, 12 us", "pool.submit -> pool.run"
[[nodiscard]] std::vector<std::string> edge_lines(const GraphEdge& edge);
// Legible on white and on black.
[[nodiscard]] std::string_view color_of_class(std::string_view how);

}  // namespace clew::output
