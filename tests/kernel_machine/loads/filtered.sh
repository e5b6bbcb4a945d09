#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A process that may not read memory by the kernel: loads need no system call.
# output:
# inline: True
# {"value":7,"n":20}
# missed: {'unreadable': 80} lost: 0
# take_node 100
# left: 0
BEFORE=forbid "$HERE/trace_victim" pointers \
  'from e in entry("pointers!take_node") group by e.args.node->value
   select new { value = e.args.node->value, n = count() }' 'kinds 10'
