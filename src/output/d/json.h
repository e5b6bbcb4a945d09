// SPDX-License-Identifier: Apache-2.0
// What a D script records as lines of JSON (option json, `clew dtrace --json`):
//
//     {"probe": {"id", "provider", "module", "function", "name"}, "cpu", "time",
//      "values": [what trace(), printf(), stack() and their kin were given],
//      "text": "what they print"}
//     {"aggregation": name, "key": [...], "value": number or buckets}
//     {"summary": {"exit", "drops": {cause: count}}}, at the end
//
// Numbers are numbers, texts texts, stacks lists of frames as in the answers of queries, sym() and
// its kin as they are printed. Private to the folder.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "aggregate/d_value.h"
#include "output/d/printf.h"
#include "output/d/record.h"
#include "output/json_value.h"

namespace clew::output::d {

Json datum_json(const Datum& datum, const target::Symbolizer& symbols);
std::string hex_of(std::span<const uint8_t> bytes);
Json probe_json(const ProbeNames& probe);
// A number, or the buckets of a distribution.
Json value_json(const aggregate::DValue& value);

}  // namespace clew::output::d
