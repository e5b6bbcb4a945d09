// SPDX-License-Identifier: Apache-2.0
// Victim `exceptions`: functions left by exceptions: to the direct caller, through several traced
// frames with destructors, through a C frame, out of and inside a library with its own runtime.
#include <cstdint>
#include <stdexcept>

#include "victim.h"

extern "C" {
uint64_t library_throws(uint64_t x);
uint64_t library_catches(uint64_t x);
uint64_t through_c(uint64_t (*callback)(uint64_t), uint64_t x);
}

VICTIM_COUNTER(library_throws);
VICTIM_COUNTER(library_catches);
VICTIM_COUNTER(throw_odd);
VICTIM_COUNTER(middle_frame);
VICTIM_COUNTER(catch_here);
// How often each function was left by an exception, not by a return.
VICTIM_COUNTER(thrown_throw_odd);
VICTIM_COUNTER(thrown_middle_frame);

const VictimCommand victim_commands[] = {{nullptr, nullptr}};

namespace {
uint64_t destroyed = 0;
struct Guard {
  ~Guard() { ++destroyed; }
};
}  // namespace

extern "C" VICTIM_FUNCTION uint64_t throw_odd(uint64_t x) {
  VICTIM_COUNT(throw_odd);
  if (x % 2 == 1) {
    VICTIM_COUNT(thrown_throw_odd);
    throw x;
  }
  return x * 3;
}

extern "C" VICTIM_FUNCTION uint64_t middle_frame(uint64_t x) {
  VICTIM_COUNT(middle_frame);
  if (x % 2 == 1) VICTIM_COUNT(thrown_middle_frame);
  const Guard guard;
  return through_c(throw_odd, x) + 5;
}

extern "C" VICTIM_FUNCTION uint64_t catch_here(uint64_t x) {
  VICTIM_COUNT(catch_here);
  try {
    return middle_frame(x);
  } catch (uint64_t thrown) {
    return thrown + 1000;
  }
}

extern "C" VICTIM_FUNCTION uint64_t catch_from_library(uint64_t x) {
  VICTIM_COUNT(library_throws);
  try {
    return library_throws(x);
  } catch (...) {  // Its runtime has its own type information.
    return x + 2000;
  }
}

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  const uint64_t destroyed_before = destroyed;
  for (uint64_t round = 0; round < rounds; ++round) {
    const bool odd = round % 2 == 1;
    VICTIM_CHECK(catch_here(round) == (odd ? round + 1000 : round * 3 + 6));
    VICTIM_CHECK(catch_from_library(round) == (odd ? round + 2000 : round + 3));
    VICTIM_COUNT(library_catches);
    VICTIM_COUNT(library_throws);  // It calls the other through the PLT.
    VICTIM_CHECK(library_catches(round) == (odd ? round + 4 : round + 3));
    digest = victim_mix(digest, catch_here(round));
  }
  VICTIM_CHECK(destroyed - destroyed_before == 2 * rounds);
  return digest;
}
