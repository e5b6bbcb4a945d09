// SPDX-License-Identifier: Apache-2.0
// The form of a recorded value or of a key's part, by the expression that gives it.
#pragma once

#include <cstdint>

#include "query/d/record.h"
#include "query/d/script.h"

namespace clew::plan::d {

// stack(), ustack(), jstack(), sym() and their kin as expressions; None for all others.
query::d::Action dynamic_action(const query::d::Node& node);

// The field of a value, without its offset. `string_bytes`: room of strings.
query::d::RecordField field_of(const query::d::Script& script, const query::d::Node& node,
                               uint32_t string_bytes);

}  // namespace clew::plan::d
