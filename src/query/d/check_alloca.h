// SPDX-License-Identifier: Apache-2.0
// Scratch memory: what is allocated must fit, and a pointer is one into it or none, never either:
// loads through it are made differently.
#pragma once

#include "query/d/check_context.h"

namespace clew::query::d::checking {

// Of a checked pointer, or of an integer that is cast to one.
[[nodiscard]] PointerSource source_of(const Context& context, const Node& node);

// D_ALLOCA_SIZE: a constant size is negative or larger than the scratch space.
Compiled<void> check_alloca_size(const Context& context, const Node& call);
// D_ALLOCA_INCOMPAT, of a Conditional and of an Assign that is no compound one.
Compiled<void> check_alloca_choice(const Context& context, const Node& node);
Compiled<void> note_pointer_source(Context& context, const Node& assign);

}  // namespace clew::query::d::checking
