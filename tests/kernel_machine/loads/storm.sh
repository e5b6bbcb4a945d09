#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same under signals at 10 kHz, in whose handlers probes fire, too, and which unwind their
# stacks from wherever they interrupt, loads of words and of texts among it.
# output:
# inline: True
# lost: 0
# left: 0
# values that were never there: 0
# hits of all calls
"$HERE/trace_victim" pointers \
  'from e in entry("pointers!take_node")
   group by e.args.node->value, str(e.args.node->name), str(e.args.node->name + 3)
   select new { value = e.args.node->value, n = count() }' "storm ${ROUNDS:-200000}" |
  python3 "$HERE/loads/judge_hits.py"
