#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A function that calls itself by way of others (an overlay asks the file system below it; D sees
# that it does): each return is paired with the entry of its own call, and none is left over.
# output:
# nested: True
# each return has its entry: True
# {"summary":{"missed":{},"dropped":{},"lost":[],"refused":[],"sites":2
command="stat /usr/bin/env /usr/bin/sort /usr/bin/dd"
"$CLEW" dtrace -q -c "$command" -n '
fbt::inode_permission:entry /pid == $target/ { nested += self->depth++ > 0; }
fbt::inode_permission:return /pid == $target && self->depth/ { self->depth--; }
END { printf("\n%d\n", nested); }' | tail -n 2 > /tmp/nested.own
"$CLEW" run --json -q -c "$command" '
from e in kernel("inode_permission") as "in" { took = 1 },
          kernel_return("inode_permission") as "out" { took = elapsed > 0 }
group by e.probe select e.probe, count() as n, sum(e.took) as timed' | grep '^{' > /tmp/nested.rows
/usr/bin/python3 - <<'END'
import json
rows = [json.loads(line) for line in open("/tmp/nested.rows")][:-1]
counts = {row["probe"]: (row["n"], row["timed"]) for row in rows}
print("nested:", int(open("/tmp/nested.own").read()) > 0)
print("each return has its entry:",
      counts["in"] == counts["out"] and counts["in"][0] == counts["in"][1] > 0)
END
grep summary /tmp/nested.rows | sed 's/,"attach_ms".*//'
