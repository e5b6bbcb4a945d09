#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Who may do little is told by what, and serves their own processes, of which alone /proc tells.
# output:
# /proc shows you your own processes alone
# the kernel takes no program of ours: CAP_BPF is missing (kernel.unprivileged_bpf_disabled is 2)
# kernel.perf_event_paranoid is 3
# inline: True
# {"n":30}
# missed: {} lost: 0
# walled_work 30
# left: 0
# clew: error: no process has the pid 1
# clew: error: tracing the kernel needs more rights than you have; run as root, or with CAP_BPF and CAP_PERFMON
# /proc shows users their own processes, and you all
as_user() { setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/tmp/nobody "$@"; }
mkdir -p -m 777 /tmp/nobody
chmod 755 /tmp/clew
sysctl -q kernel.perf_event_paranoid=3 kernel.unprivileged_bpf_disabled=2 kernel.yama.ptrace_scope=0
mount -o remount,hidepid=2 /proc
as_user "$CLEW" doctor | grep -o '/proc shows.*\|the kernel takes no.*\|kernel.perf_event.*'
as_user "$HERE/trace_victim" walled 'from e in entry("walled!walled_work") select count() as n' \
  'run 30'
as_user "$CLEW" run -p 1 'from e in entry("*!main") select count()' 2>&1
as_user "$CLEW" run 'from s in syscall("read") select count() for 1s' 2>&1 | sed 's/ (creating.*//'
"$CLEW" doctor | grep -o '/proc shows.*'
mount -o remount,hidepid=0 /proc
