// SPDX-License-Identifier: Apache-2.0
// Library `tokens_library`: clew/cause.h for programs in other languages, and what tests trace in
// these. tokens_grpc.py uses it.
#include <stdint.h>

#include "clew/cause.h"
#include "victim.h"

// Some work, so that each is a function of its own.
static volatile uint64_t sum;

VICTIM_FUNCTION void receive(uint64_t request) {
  sum += request;
}

VICTIM_FUNCTION void work(uint64_t request) {
  sum += 2 * request;
}
