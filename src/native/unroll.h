// SPDX-License-Identifier: Apache-2.0
// Short loops, written twice in a row. Each turn of a loop charges fuel, which is two instructions
// of the five to seven that a walk along a list has: so it charges once in two turns.
#pragma once

#include <vector>

#include "native/operation.h"

namespace clew::native {

// The same program. Of a loop with one way back that is a branch to its first operation, and that
// has no call, no other loop and no way into its middle, the operations stand there twice: behind
// the first ones a branch, the other way round, leaves the loop.
std::vector<Operation> unroll(std::vector<Operation> operations);

}  // namespace clew::native
