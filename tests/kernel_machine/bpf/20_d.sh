#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# D's providers of the kernel, and its types of values.
# output:
# writes 3 of 3000 bytes, timed 3
# /clew/two 1
# /clew/one 2
# failed 3, errno 2
# one child, which ended: 1
# system time seen: 1
# ticked: 1
"$CLEW" dtrace -q -c "/usr/bin/python3 /tmp/calls.py" -n '
syscall::write:entry /pid == $target && arg2 == 1000/
{ writes++; bytes += arg2; self->t = timestamp; }
syscall::write:return /self->t/ { timed += timestamp > self->t; self->t = 0; }
syscall::chdir:entry /pid == $target/ { @paths[copyinstr(arg0)] = count(); }
syscall::chdir:return /pid == $target && errno/ { failed++; number = errno; }
proc:::create /pid == $target/ { made = args[0]->pr_pid; }
proc:::exit /pid == made/ { ended++; }
sched:::on-cpu /pid == $target/ { self->on = vtimestamp; ons++; }
END {
  printf("writes %d of %d bytes, timed %d\n", writes, bytes, timed);
  printa("%s %@d\n", @paths);
  printf("failed %d, errno %d\n", failed, number);
  printf("one child, which ended: %d\n", ended);
  printf("system time seen: %d\n", ons > 0);
}' | grep .
"$CLEW" dtrace -q -n '
profile-49 { ticks++; }
tick-20ms { ours++; }
tick-20ms /ticks > 0 && ours > 0/ { exit(0); }
END { printf("ticked: %d\n", ticks > 0 && ours > 0); }' | grep .
