#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Who calls a function, and how many calls there are of each process.
# output:
# {"caller":"vmlinux!ksys_read","procName":"dd","n":10}
"$CLEW" run --json -q -c "dd if=/dev/zero of=/dev/null bs=3 count=10 status=none" '
from e in kernel("vfs_read") where e.count == 3
group by e.caller, e.procName select e.caller, e.procName, count() as n' | grep -v summary
