/* SPDX-License-Identifier: Apache-2.0 */
/* Averages that follow a stream of numbers (Fay, 5.2.3). Each thread has one window of its own. */
#include "clew.h"

#define WINDOW 64 /* A power of two. */

static s64 window[WINDOW];
static s64 window_sum;
static u64 window_count;

/* The mean of the last 64 values with this one, rounded toward zero. */
s64 moving_average(s64 value) {
  u64 place = window_count++ & (WINDOW - 1);
  window_sum += value - window[place];
  window[place] = value;
  u64 count = window_count < WINDOW ? window_count : WINDOW;
  return clew_divide(window_sum, (s64)count);
}

static s64 smooth; /* Times 65536. */
static bool has_smooth;

/* An average in which every value weighs 1/`weight` and what was before it the rest; the first
 * value is the first average. */
s64 exponential_average(s64 value, s64 weight) {
  s64 scaled = value << 16;
  if (weight < 1) weight = 1;
  smooth = has_smooth ? smooth + clew_divide(scaled - smooth, weight) : scaled;
  has_smooth = true;
  return smooth >> 16;
}
