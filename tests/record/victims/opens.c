// SPDX-License-Identifier: Apache-2.0
// Opens the file of each line that comes, and says whether it is there. Ends with 9.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline, noclone)) static int is_there(const char* path) {
  const int file = open(path, O_RDONLY);  // LAST: open
  if (file < 0) return 0;
  close(file);
  return 1;
}

int main(void) {
  char path[4096];
  puts("ready");
  fflush(stdout);
  while (fgets(path, sizeof(path), stdin) != NULL) {
    path[strcspn(path, "\n")] = 0;
    puts(is_there(path) ? "there" : "missing");
    fflush(stdout);
  }
  return 9;
}
