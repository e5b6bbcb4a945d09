#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Yama's scopes, by each the words for a command and for a process: one's own commands alone, nobody
# without the right, nobody at all (to the end).
# output:
# scope 1
# only commands that Clew starts (-c)
# clew: error: no permission to trace process N: kernel.yama.ptrace_scope is 1; run as root, start the command with -c, or set it to 0 [no-permission]
# {"n":1}
# {"n":0}
# scope 2
# clew: error: no permission to trace a command: kernel.yama.ptrace_scope is 2; run as root, or set it to 0 [no-permission]
# clew: error: no permission to trace process N: kernel.yama.ptrace_scope is 2; run as root, or set it to 0 [no-permission]
# {"n":0}
# scope 3
# refused: every process [no-permission]
# clew: error: no permission to trace a command: kernel.yama.ptrace_scope is 3; nobody may, until the next boot [no-permission]
# clew: error: no permission to trace process N: kernel.yama.ptrace_scope is 3; nobody may, until the next boot [no-permission]
as_user() { setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/tmp/nobody "$@"; }
mkdir -p -m 777 /tmp/nobody
chmod 755 /tmp/clew
setpriv --reuid 65534 --regid 65534 --clear-groups sleep 1000 &
sleeper=$!
scope() {
  echo "scope $1"
  sysctl -q "kernel.yama.ptrace_scope=$1"
}
of_command() {
  "$@" run --json -c "$VICTIMS/walled" 'from e in entry("walled!main") select count() as n'
}
of_process() {
  "$@" run --json -p "$sleeper" 'from e in entry("libc.so.6!malloc") select count() as n for 10ms'
}
{
  scope 1
  as_user "$CLEW" doctor | grep -o 'only commands.*'
  of_process as_user "$CLEW"
  of_command as_user "$CLEW"
  of_process "$CLEW"
  scope 2
  of_command as_user "$CLEW"
  of_process as_user "$CLEW"
  of_process "$CLEW"
  scope 3
  "$CLEW" doctor | grep -o 'refused: every process.*'
  of_command "$CLEW"
  of_process "$CLEW"
} 2>&1 | grep -v 'summary\|clew: tracing\|ready' | sed "s/process $sleeper/process N/"
kill "$sleeper"
