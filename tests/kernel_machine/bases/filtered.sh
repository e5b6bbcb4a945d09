#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A filter that kills for arch_prctl: the tracer serves the threads that there are; those that come
# later are counted as missed.
# output:
# inline: True
# {"n":70}
# missed: {'no_slot': 4} lost: 1
# walled_work 74
# left: 0
BEFORE=lock "$HERE/trace_victim" walled \
  'from e in entry("walled!walled_work") select count() as n' 'run 30' 'help 40' 'threads 4'
