#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# D's texts of all lengths, at all places of a word, and bytes: they are what the kernel gives.
# output:
# inline: True
# take_text 200
# left: 0
# inline: True
# take_text 200
# left: 0
# the same 200 lines by both ways
trace() {
  "$HERE/trace_victim" texts '
#pragma D option strsize=256
BEGIN { printf("armed\n"); }
pid$target::take_text:entry {
  this->eight = (unsigned char *)copyin(arg0 + 1, 9);
  printf("row %d %s %s %d %d\n", arg1, copyinstr(arg0), copyinstr(arg0 + arg1 % 9, 21),
         this->eight[0], this->eight[8]);
}' 'run 200' > "$1"
  grep -v '^row' "$1"
  grep '^row' "$1" | sort > "$1.rows"
}
trace /tmp/loads
CLEW_NO_FAULT_FREE_LOAD=1
export CLEW_NO_FAULT_FREE_LOAD
trace /tmp/kernel
cmp /tmp/loads.rows /tmp/kernel.rows &&
  echo "the same $(wc -l < /tmp/loads.rows) lines by both ways"
