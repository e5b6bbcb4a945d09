// SPDX-License-Identifier: Apache-2.0
#include "clew/cause.h"
#include "said.h"

void make_token_in_c(char* text) {
  clew_cause_send_text(text);
}

int receive_in_c(const char* text, size_t length) {
  return clew_cause_receive_text(text, length);
}
