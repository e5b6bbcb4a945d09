#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A job of two threads and of others that come and go is counted exactly; after the session no
# thread has a gs base, and no mapping is left.
# output:
# inline: True
# {"n":2800}
# missed: {} lost: 0
# own 0
# helper 0
# walled_work 2800
# left: 0
AFTER="gs counts" "$HERE/trace_victim" walled \
  'from e in entry("walled!walled_work") select count() as n' \
  'run 2000' 'threads 100' 'help 600' 'threads 100'
