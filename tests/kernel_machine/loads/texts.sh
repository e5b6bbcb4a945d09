#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Texts of all lengths, at all places of a word, and one that ends where its page ends: they are
# what the kernel gives.
# output:
# inline: True
# missed: {} lost: 0
# take_text 200
# left: 0
# inline: True
# missed: {} lost: 0
# take_text 200
# left: 0
# the same 200 texts by both ways
trace() {
  "$HERE/trace_victim" texts \
    'from e in entry("texts!take_text") select e.arg1 as size, str(e.arg0, 4096) as all,
     str(e.arg0 + 3) as part, str(e.arg0 + e.arg1, 300) as none' 'run 200' > "$1"
  grep -v '^{"size' "$1"
  grep '^{"size' "$1" | sort > "$1.rows"
}
trace /tmp/loads
CLEW_NO_FAULT_FREE_LOAD=1
export CLEW_NO_FAULT_FREE_LOAD
trace /tmp/kernel
cmp /tmp/loads.rows /tmp/kernel.rows &&
  echo "the same $(wc -l < /tmp/loads.rows) texts by both ways"
