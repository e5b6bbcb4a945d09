#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A query on a function of the kernel counts as many calls as a program makes, and reads its
# arguments by their names, and what they point to. Quantiles are the middles of their buckets
# (abi/buckets.h): 100 to 103, 192 to 199.
# output:
# own: 200 reads of 20100 bytes, p50 100, p99 198, 200 sizes
# {"n":200,"bytes":20100,"most":200,"raw":20100,"p50":102,"p99":196,"sizes":200}
# {"summary":{"missed":{},"dropped":{},"lost":[],"refused":[],"sites":1
cat > /tmp/reads.py <<'END'
import os
zeros = os.open("/dev/zero", os.O_RDONLY)
got = sorted(len(os.read(zeros, size)) for size in range(1, 201))
with open("/tmp/reads.own", "w") as own:
    print(f"own: {len(got)} reads of {sum(got)} bytes, p50 {got[99]}, p99 {got[197]}, "
          f"{len(set(got))} sizes", file=own)
END
"$CLEW" run --json -q -c "/usr/bin/python3 /tmp/reads.py" '
from e in kernel("vfs_read")
where str(e.file->f_path.dentry->d_name.name) == "zero"
select count() as n, sum(e.count) as bytes, max(e.args.count) as most, sum(e.arg2) as raw,
       p50(e.count) as p50, p99(e.count) as p99, distinct(e.count) as sizes
' > /tmp/reads.rows
cat /tmp/reads.own
sed 's/,"attach_ms".*//' /tmp/reads.rows
