// SPDX-License-Identifier: Apache-2.0
// What a program has said to Clew last, where the functions of <clew/cause.h> are these.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct Said {
  uint64_t sent[2];
  uint64_t received[2];
  int sends;
  int receives;
  int ends;
};
extern struct Said said;

// in_c.c: the header in C.
void make_token_in_c(char* text);
int receive_in_c(const char* text, size_t length);

#ifdef __cplusplus
}
#endif
