// SPDX-License-Identifier: Apache-2.0
// The frame of every victim: a program that is traced, counts its own calls, and checks its own
// results. It takes commands on standard input, one a line, and answers with `name value` lines
// and then `end`:
//
//     run N     does N rounds: prints `result` (a digest of all it computed) and `errors`
//     counts    prints every counter
//     exit      ends with status 0
//
// and further commands of a victim's own. It prints `ready` when it waits for the first command.
// A victim is deterministic: the same rounds give the same result, traced or not.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct VictimCounter {
  const char* name;
  uint64_t value;
};

struct VictimCommand {
  const char* name;
  void (*act)(uint64_t argument);
};

// Each victim defines these. The list of commands ends with a null name.
uint64_t victim_run(uint64_t rounds);
extern const struct VictimCommand victim_commands[];

// Takes commands until there are no more; for a thread that takes over from the first one.
void victim_serve(void);

// Prints one line of an answer.
void victim_print(const char* name, uint64_t value);
void victim_check_failed(const char* condition, const char* file, int line);

// The digest of a run: order matters, so results cannot be exchanged unseen.
static inline uint64_t victim_mix(uint64_t digest, uint64_t value) {
  return ((digest ^ value) * 0x9E3779B97F4A7C15ULL) ^ (digest >> 29);
}

// A counter compiled into the victim; its name is the name of the function it counts.
#define VICTIM_COUNTER(symbol)               \
  __attribute__((section("victim_counters"), \
                 used)) static struct VictimCounter victim_counter_##symbol = {#symbol, 0}
#define VICTIM_COUNT(symbol) \
  __atomic_fetch_add(&victim_counter_##symbol.value, (uint64_t)1, __ATOMIC_RELAXED)
#define VICTIM_CHECK(condition) \
  ((condition) ? (void)0 : victim_check_failed(#condition, __FILE__, __LINE__))

// Functions that are traced must exist as such.
#define VICTIM_FUNCTION __attribute__((noinline, noclone))

#ifdef __cplusplus
}
#endif
