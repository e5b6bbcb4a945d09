// SPDX-License-Identifier: Apache-2.0
// The operators of both languages as operations of the probe ISA.
#pragma once

#include "isa/opcode.h"
#include "query/operators.h"

namespace clew::plan {

// Of an operator whose result is no truth.
isa::Alu alu_of(query::BinaryOperator op, bool is_signed);
// Of a comparison: the jump that is taken where it holds.
isa::Jump jump_of(query::BinaryOperator op, bool is_signed);

}  // namespace clew::plan
