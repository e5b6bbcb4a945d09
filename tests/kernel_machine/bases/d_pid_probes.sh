#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# D's pid probes run in the process, in all of its threads.
# output:
# inline: True
# on processor 0 or 1 (1): 350
# entries 350, returns 350, each in its thread 350
# own 0
# helper 0
# left: 0
AFTER=gs "$HERE/trace_victim" walled '
BEGIN { printf("armed\n"); }
pid$target::walled_work:entry { @e = count(); @cpus[cpu < 2] = count(); self->x = tid; }
pid$target::walled_work:return { @r = count(); }
pid$target::walled_work:return /self->x == tid/ { @t = count(); }
END {
  printa("on processor 0 or 1 (%d): %@d\n", @cpus);
  printa("entries %@d, ", @e);
  printa("returns %@d, ", @r);
  printa("each in its thread %@d\n", @t);
}' \
  'run 200' 'help 100' 'threads 50'
