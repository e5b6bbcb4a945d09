// SPDX-License-Identifier: Apache-2.0
#include "said.h"

struct Said said;

void clew_cause_send_token(uint64_t high, uint64_t low);
void clew_cause_receive_token(uint64_t high, uint64_t low);
void clew_cause_end(void);

void clew_cause_send_token(uint64_t high, uint64_t low) {
  said.sent[0] = high;
  said.sent[1] = low;
  ++said.sends;
}

void clew_cause_receive_token(uint64_t high, uint64_t low) {
  said.received[0] = high;
  said.received[1] = low;
  ++said.receives;
}

void clew_cause_end(void) {
  ++said.ends;
}
