#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# At a return: the result, the time since the entry, and the arguments as they were there. The times
# are within those that the program measures itself.
# output:
# {"n":50,"bytes":38850,"asked":38850,"timed":50}
# 20 naps of at least 20 ms, together not longer than the program's own: True
# {"summary":{"missed":{},"dropped":{},"lost":[],"refused":[],"sites":1
"$CLEW" run --json -q -c "dd if=/dev/zero of=/dev/null bs=777 count=50 status=none" '
from e in kernel_return("vfs_read")
where e.entry.count == 777
select count() as n, sum(e.retval) as bytes, sum(e.entry.args.count) as asked,
       sum(e.elapsed > 0) as timed' | grep -v summary
cat > /tmp/naps.py <<'END'
import ctypes, time
libc = ctypes.CDLL(None)
nap = (ctypes.c_long * 2)(0, 20_000_000)  # time.sleep() sleeps until a time that it took before.
begin = time.monotonic_ns()
for _ in range(20):
    libc.nanosleep(nap, None)
with open("/tmp/naps.own", "w") as own:
    print(time.monotonic_ns() - begin, file=own)
END
"$CLEW" run --json -q -c "/usr/bin/python3 /tmp/naps.py" '
from e in kernel_return("hrtimer_nanosleep")
select count() as n, min(e.elapsed) as least, sum(e.elapsed) as sum' > /tmp/naps.rows
/usr/bin/python3 - <<'END'
import json, sys
rows = [json.loads(line) for line in open("/tmp/naps.rows")]
own = int(open("/tmp/naps.own").read())
good = rows[0]["least"] >= 20_000_000 and 20 * 20_000_000 <= rows[0]["sum"] <= own
print(f"{rows[0]['n']} naps of at least 20 ms, together not longer than the program's own: {good}")
print(rows, own, file=sys.stderr)  # Shown when it is not good.
END
grep summary /tmp/naps.rows | sed 's/,"attach_ms".*//'
