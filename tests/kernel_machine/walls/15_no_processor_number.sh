#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A processor that has no rdtscp: a query that asks for its number is told so, and the program runs
# on; D reads it in another way (bases/d_pid_probes).
# output:
# 0
# this processor does not tell programs its number (it has no rdtscp); ask without cpu
# {"n":1}
grep -c rdtscp /proc/cpuinfo
ask() {
  "$CLEW" run --json -q -c "$VICTIMS/walled" "$1" </dev/null 2>&1 | grep -v summary
}
ask 'from e in entry("walled!main") group by e.cpu select count() as n' |
  grep -o 'this processor.*'
ask 'from e in entry("walled!main") select count() as n' | grep '"n"'
