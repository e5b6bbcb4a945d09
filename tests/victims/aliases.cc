// SPDX-License-Identifier: Apache-2.0
// Victim `aliases`: functions with several names at one address (an IFUNC, two functions folded
// into one, the complete and the base constructor), each counted once per call.
#include <cstddef>
#include <cstdint>

#include "victim.h"

extern "C" {
void* copy_bytes(void* to, const void* from, size_t size);
void* copy_word(void* to, const uint64_t* from);
}

VICTIM_COUNTER(copy_bytes);
VICTIM_COUNTER(copy_word);
VICTIM_COUNTER(twin);
VICTIM_COUNTER(Widget);

const VictimCommand victim_commands[] = {{nullptr, nullptr}};

// What identical code folding leaves of two equal functions: one address, two names.
extern "C" VICTIM_FUNCTION uint64_t twin_left(uint64_t x) noexcept {
  VICTIM_COUNT(twin);
  return x * 7 + 1;
}
extern "C" uint64_t twin_right(uint64_t x) noexcept __attribute__((alias("twin_left")));

// Its constructor is emitted once, as C1 (complete object) and C2 (base object).
struct Widget {
  __attribute__((noinline)) explicit Widget(uint64_t x);
  uint64_t value;
};
__attribute__((noinline)) Widget::Widget(uint64_t x) : value(x + 5) {
  VICTIM_COUNT(Widget);
}

struct BigWidget : Widget {
  explicit BigWidget(uint64_t x) : Widget(x), twice(value * 2) {}
  uint64_t twice;
};

uint64_t victim_run(uint64_t rounds) {
  void* (*volatile pointer)(void*, const void*, size_t) = copy_bytes;
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    uint64_t copies[3] = {};
    VICTIM_COUNT(copy_bytes);
    copy_bytes(&copies[0], &round, sizeof round);
    VICTIM_COUNT(copy_bytes);
    pointer(&copies[1], &round, sizeof round);
    VICTIM_COUNT(copy_bytes);
    VICTIM_COUNT(copy_word);
    copy_word(&copies[2], &round);
    VICTIM_CHECK(copies[0] == round && copies[1] == round && copies[2] == round);
    VICTIM_CHECK(twin_left(round) == twin_right(round));
    const Widget widget(round);
    const BigWidget big(round);
    VICTIM_CHECK(big.twice == 2 * widget.value);
    digest = victim_mix(digest, copies[2] + big.twice + twin_left(round));
  }
  return digest;
}
