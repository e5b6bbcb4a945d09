// SPDX-License-Identifier: Apache-2.0
// What the machine cannot hold: the bounds that its accessors' masks rely on, all in one place.
#pragma once

#include "plan/d/generate.h"
#include "plan/d/storage.h"

namespace clew::plan::d {

// D_NOMEM, with this message.
tl::unexpected<query::d::CompileError> too_large(std::string message);

// Of a string at most: strsize characters, where there is room for them, and the end.
uint32_t string_bytes_of(const query::d::Script& script);

// Of the variables and aggregations that a script was given; clauses and their records are checked
// when they are made. Error: D_NOMEM.
query::d::Compiled<void> check_limits(const query::d::Script& script, const StoragePlan& storage,
                                      const Generated& generated);

}  // namespace clew::plan::d
