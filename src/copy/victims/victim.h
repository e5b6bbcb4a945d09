// SPDX-License-Identifier: Apache-2.0
// For assembly: how the victims' functions are written.
#pragma once

// clang-format off
#define FUNCTION(name) .globl name; .type name, @function; .balign 16; name:
#define END(name) .size name, . - name

