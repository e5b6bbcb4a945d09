// SPDX-License-Identifier: Apache-2.0
// What a program under stress does; frame.c has the rest of it.
#pragma once

#include <stdint.h>

// Work of a millisecond or less, by any thread; its result is told by the seed alone.
uint64_t stress_round(uint64_t seed);
uint64_t debugged(uint64_t x);
