// SPDX-License-Identifier: Apache-2.0
// A C frame, compiled with -fexceptions, that exceptions pass through.
#include <stdint.h>

#include "victim.h"

VICTIM_COUNTER(through_c);

VICTIM_FUNCTION uint64_t through_c(uint64_t (*callback)(uint64_t), uint64_t x) {
  VICTIM_COUNT(through_c);
  return callback(x) + 1;
}
