// SPDX-License-Identifier: Apache-2.0
// Sums NAME=NUMBER; a word without = crashes it. For a look at how it came to that (README):
//     gcc -g -O1 -o sum sum.c && clew record ./sum a=1 b=-2 c && clew show sum.snap
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int number_of(const char* word) {
  const char* sign = strchr(word, '=');
  if (sign[1] == '-') return -atoi(sign + 2);
  return atoi(sign + 1);
}

int main(int count, char** words) {
  int sum = 0;
  for (int i = 1; i < count; ++i)
    sum += number_of(words[i]);
  printf("%d\n", sum);
  return 0;
}
