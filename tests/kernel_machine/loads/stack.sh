#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A read below the first thread's stack does not make it grow, by loads as by the kernel.
# output:
# inline: True
# missed: {'unreadable': 50} lost: 0
# take_node 50
# left: 0
"$HERE/trace_victim" pointers \
  'from e in entry("pointers!take_node") group by e.args.node->value
   select new { value = e.args.node->value, n = count() }' 'below 50'
