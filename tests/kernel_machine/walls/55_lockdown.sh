#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A locked kernel: integrity, then (to the end) confidentiality. Processes are served by both.
# output:
# the kernel is locked down (integrity)
# {"n":2}
# sh /
# sh /tmp
# inline: True
# {"n":30}
# missed: {} lost: 0
# walled_work 30
# left: 0
# the kernel is locked down (confidentiality)
# clew: error: the children of the processes cannot be watched: tracepoint("task:task_newtask") exports no 'clone_flags'; cannot read available_events of tracefs: the kernel is locked down; boot without lockdown=confidentiality
# dtrace: could not enable tracing: clause 0: the kernel refuses the program 'clew_d': it reads memory, and the kernel is locked down; boot without lockdown=confidentiality
# inline: True
# {"n":30}
# missed: {} lost: 0
# walled_work 30
# left: 0
mount -t securityfs securityfs /sys/kernel/security
for level in integrity confidentiality; do
  echo "$level" >/sys/kernel/security/lockdown
  "$CLEW" doctor | grep -o 'the kernel is locked.*'
  "$CLEW" run --json -c 'sh -c "cd /; cd /tmp"' \
    'from s in syscall("chdir") select count() as n' 2>&1 | grep -v 'summary\|clew: tracing'
  "$CLEW" dtrace -q -c 'sh -c "cd /; cd /tmp"' \
    -n 'syscall::chdir:entry /pid == $target/
        { printf("%s %s\n", execname, copyinstr(arg0)); }' 2>&1 | grep .
  "$HERE/trace_victim" walled 'from e in entry("walled!walled_work") select count() as n' 'run 30'
done
