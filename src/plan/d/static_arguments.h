// SPDX-License-Identifier: Apache-2.0
// The arguments of a static probe (USDT) in a process: from where its note says that they are, to
// the window's header. Private to the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "isa/builder.h"

namespace clew::plan::d {

// Appends what stores those that `wanted` has as bits; r0 to r5 are lost. The firing has begun with
// its registers noted. Memory that cannot be read gives 0. False when a place is not understood, or
// is none that a program can read.
bool put_static_arguments(isa::Builder& b, std::string_view text, uint32_t wanted);

}  // namespace clew::plan::d
