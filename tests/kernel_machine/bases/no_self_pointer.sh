#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Threads whose thread pointer does not point to itself, as Go's: each asks the kernel.
# output:
# inline: True
# {"n":1500}
# missed: {} lost: 0
# bare_work 1500
# left: 0
"$HERE/trace_victim" bare 'from e in entry("bare!bare_work") select count() as n' \
  'run 1000' 'threads 5'
