#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A kernel before Linux 6.1 serves queries on processes alone; what asks more of it is told so.
# output:
# the kernel takes no program of ours: it is older than 6.1
# clew: error: this kernel is too old: D and queries on the kernel need Linux 6.1
# clew: error: this kernel is too old: D and queries on the kernel need Linux 6.1
# clew: error: this kernel is too old: D and queries on the kernel need Linux 6.1
# clew: error: this kernel is too old: D and queries on the kernel need Linux 6.1
# dtrace: could not enable tracing: this kernel is too old: D and queries on the kernel need Linux 6.1
# dtrace: could not enable tracing: this kernel is too old: D and queries on the kernel need Linux 6.1
# {"n":4}
# 1 program that processes began by exec
"$CLEW" doctor | grep -o 'the kernel takes no program of ours.*'
for source in 'syscall("read")' 'tracepoint("sched:sched_switch")' 'kernel("vfs_read")' \
              'profile(99hz)'; do
  "$CLEW" run "from e in $source select count() for 1s" 2>&1
done
"$CLEW" dtrace -q -n 'BEGIN { exit(0); }' 2>&1
"$CLEW" dtrace -q -n 'pid$target:libc.so.6:setenv:entry { exit(0); }' -c /bin/true 2>&1
# Children that are followed, and what they run, are no question to a program of ours. Whether one
# that ends at once is met in time is chance; that something of it is missing is told in any case.
"$CLEW" run --json --follow -c "sh -c 'for i in 1 2 3 4; do (:); done; dd --version >/dev/null'" \
  'from f in entry("libc.so.6!fork") select count() as n' |
  sed 's/.*"lost":\["\(.* began by exec\) [^"]*"\].*/\1/'
