#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A query on a function of the kernel counts as many calls as a program makes, and reads its
# arguments by their names, and what they point to.
# output:
# own: 200 reads of 20100 bytes
# {"n":200,"bytes":20100,"most":200,"raw":20100}
# {"summary":{"missed":{},"dropped":{},"lost":[],"refused":[],"sites":1
cat > /tmp/reads.py <<'END'
import os
zeros = os.open("/dev/zero", os.O_RDONLY)
got = [len(os.read(zeros, size)) for size in range(1, 201)]
with open("/tmp/reads.own", "w") as own:
    print(f"own: {len(got)} reads of {sum(got)} bytes", file=own)
END
"$CLEW" run --json -q -c "/usr/bin/python3 /tmp/reads.py" '
from e in kernel("vfs_read")
where str(e.file->f_path.dentry->d_name.name) == "zero"
select count() as n, sum(e.count) as bytes, max(e.args.count) as most, sum(e.arg2) as raw
' > /tmp/reads.rows
cat /tmp/reads.own
sed 's/,"attach_ms".*//' /tmp/reads.rows
