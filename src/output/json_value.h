// SPDX-License-Identifier: Apache-2.0
// Values and losses as JSON (RFC 8259). For src/output and what is in it.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "aggregate/value.h"
#include "collect/losses.h"

namespace clew::output {

using Json = nlohmann::ordered_json;

// Empty buckets of histograms and what is not known of a frame are left out.
[[nodiscard]] Json to_json(const aggregate::Value& value, aggregate::ColumnType type);
// Bytes that are no UTF-8 are an object with `hex`.
[[nodiscard]] Json exact_text(const std::string& text);
[[nodiscard]] Json disarmed_json(const collect::DisarmedProbe& disarmed);
[[nodiscard]] Json losses_json(const collect::Losses& losses);

// On one line. What is no number in JSON (NaN, infinity) is null; bytes that are no UTF-8 become
// U+FFFD.
[[nodiscard]] std::string json_text(const Json& json);

}  // namespace clew::output
