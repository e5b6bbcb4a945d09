// SPDX-License-Identifier: Apache-2.0
// Program -> text, in the syntax that isa/assembler.h reads, so that `clew explain` shows programs
// that can be assembled again.
#pragma once

#include <string>

#include "isa/program.h"

namespace clew::isa {

// One instruction per line, a label line `L7:` before an instruction 7 that is branched to. For a
// valid program, assembling the text gives the same code. What is not an instruction becomes a
// comment with its bytes; a branch to nowhere shows its distance.
std::string print(const Program& program);

}  // namespace clew::isa
