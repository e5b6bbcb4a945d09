// SPDX-License-Identifier: Apache-2.0
// The layout of each aggregation's key, by all the places of the script that update it.
#pragma once

#include <cstdint>
#include <vector>

#include "query/d/record.h"
#include "query/d/script.h"

namespace clew::plan::d {

// By aggregation of the script; without fields where it has no key or is never updated.
// `string_bytes`: room of strings.
std::vector<query::d::KeyLayout> lay_out_keys(const query::d::Script& script,
                                              uint32_t string_bytes);

}  // namespace clew::plan::d
