#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Words behind pointers, also behind two: of what can be read, and of nothing else. The process's
# vDSO has the load while there is a session.
# output:
# inline: True
# its vDSO is changed: True
# {"value":7,"n":200}
# missed: {'unreadable': 800} lost: 0
# take_node 1000
# left: 0
# its vDSO is changed: False
# its memory is read by loads
# inline: True
# {"value":9,"name":"second","n":100}
# missed: {'unreadable': 900} lost: 0
# take_node 1000
# left: 0
VDSO=1 CLEW_LOG=/tmp/log "$HERE/trace_victim" pointers \
  'from e in entry("pointers!take_node") group by e.args.node->value
   select new { value = e.args.node->value, n = count() }' 'kinds 100'
grep -o 'its memory is read by loads' /tmp/log
"$HERE/trace_victim" pointers \
  'from e in entry("pointers!take_node")
   group by e.args.node->next->value, str(e.args.node->next->name)
   select new { value = e.args.node->next->value, name = str(e.args.node->next->name),
                n = count() }' \
  'kinds 100'
