// SPDX-License-Identifier: Apache-2.0
// Functions that others ask for the place they were called from (__builtin_return_address(), or
// assembly). On a copy they would answer with a place in it, and what the program computes could
// be another. Who is called through a pointer is not among them.
#pragma once

#include <cstdint>
#include <set>

#include "copy/facts.h"

namespace clew::copy {

// The first addresses of those that call, or leave by a jump to, a function of the module that
// reads its own return address.
std::set<uint64_t> asked_callers(const Facts& facts);

}  // namespace clew::copy
