// SPDX-License-Identifier: Apache-2.0
// Machine code as text, for `clew explain`: one line per instruction, Intel syntax, with the names
// of the accessors at calls.
#pragma once

#include <string>

#include "native/code.h"

namespace clew::native {

// Bytes that do not decode are printed as `db`. Branch targets are offsets from the first byte.
std::string print(const Code& code);

}  // namespace clew::native
