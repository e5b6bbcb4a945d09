// SPDX-License-Identifier: Apache-2.0
// Text -> Program. The syntax is that of the public eBPF conformance vectors:
//
//     # comment
//     start:                      label; `exit` also names the first exit instruction
//       ldxdw %r2, [%r1+16]       load, store: [register + or - bytes]
//       mov %r0, 0xff             64-bit; mov32 and so on for 32 bits
//       jne %r2, %r0, start       branch to a label, or `+3`, `-2` instructions from the next
//       lock fetch add [%r10-8], %r2
//       call local start          a function of the program
//
// and, beyond the vectors:
//
//       call table_find           an accessor by name or number
//       lddw window %r1, 768      window pointer to byte 768
//       lddw site %r1, 2          site constant 2
//       lddw global %r1, 8        the globals' byte 8
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "isa/program.h"

namespace clew::isa {

// A decimal immediate of 32 bits is from -2^31 to 2^31 - 1; hexadecimal goes up to 0xffffffff.
// Errors: InvalidQuery, "line:column: error: …" with the offending text and what was expected;
// Limit for over kInstructionsMax instructions. The result is encoded correctly, but not validated.
Expected<Program> assemble(std::string_view text, std::string name = "program");

}  // namespace clew::isa
