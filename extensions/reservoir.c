/* SPDX-License-Identifier: Apache-2.0 */
/* Reservoir sampling (Vitter, Random Sampling with a Reservoir, ACM TOMS 1985, algorithm R). */
#include "clew.h"

static u64 seen;
static u64 random_state;

/* The place (1 to `size`) that this event takes in a sample of `size` of all events of its thread
 * so far, in which each of them is as likely as any other; 0 when it is not taken. The last event
 * with a place is the one that is in the sample. */
u64 reservoir(u64 size) {
  u64 place = seen++;
  if (place >= size) place = clew_random(&random_state) % seen;
  return place < size ? place + 1 : 0;
}
