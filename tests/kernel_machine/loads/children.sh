#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Children have the load of their parent, and lose it with the probes.
# output:
# inline: True
# its vDSO is changed: True
# {"value":7,"n":60}
# missed: {'unreadable': 240} lost: 0
# take_node 100
# left: 0
# its vDSO is changed: False
printf '#!/bin/sh\nverb=$1; shift; exec /tmp/clew "$verb" --follow "$@"\n' > /tmp/follow
chmod +x /tmp/follow
CLEW=/tmp/follow VDSO=1 "$HERE/trace_victim" pointers \
  'from e in entry("pointers!take_node") group by e.args.node->value
   select new { value = e.args.node->value, n = count() }' 'kinds 10' 'children 20'
