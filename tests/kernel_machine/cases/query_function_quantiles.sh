#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Quantiles and distinct values of arguments, counted in the kernel, of sizes that a program reads.
# Quantiles are the middles of their buckets (aggregate/buckets.h): 100 to 103, 192 to 199.
# output:
# own: p50 100, p99 198, 200 sizes
# {"n":200,"p50":102,"p99":196,"sizes":200}
# {"summary":{"missed":{},"dropped":{},"lost":[],"refused":[],"sites":1
cat > /tmp/sizes.py <<'END'
import os
zeros = os.open("/dev/zero", os.O_RDONLY)
sizes = sorted(len(os.read(zeros, size)) for size in range(1, 201))
with open("/tmp/sizes.own", "w") as own:
    print(f"own: p50 {sizes[99]}, p99 {sizes[197]}, {len(set(sizes))} sizes", file=own)
END
"$CLEW" run --json -q -c "/usr/bin/python3 /tmp/sizes.py" '
from e in kernel("vfs_read")
where str(e.file->f_path.dentry->d_name.name) == "zero"
select count() as n, p50(e.count) as p50, p99(e.count) as p99, distinct(e.count) as sizes
' > /tmp/sizes.rows
cat /tmp/sizes.own
sed 's/,"attach_ms".*//' /tmp/sizes.rows
