#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A pattern of functions: each counts by its name, and by who called it.
# output:
# {"function":"vfs_read","module":"vmlinux","caller":"vmlinux!ksys_read","n":21}
# {"function":"vfs_write","module":"vmlinux","caller":"vmlinux!ksys_write","n":21}
"$CLEW" run --json -q -c "dd if=/dev/zero of=/dev/null bs=1 count=21 status=none" '
from e in kernel("vfs_[rw]*")
where e.arg2 == 1 && e.function in ("vfs_read", "vfs_write")
group by e.function, e.module, e.caller
select e.function, e.module, e.caller, count() as n orderby e.function' | grep -v summary
