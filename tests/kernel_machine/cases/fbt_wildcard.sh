#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A description of many functions: those that the kernel lets nobody probe are left out, the others
# count.
# output:
# vfs_read 21
# vfs_write 21
#
"$CLEW" dtrace -q -c "dd if=/dev/zero of=/dev/null bs=1 count=21 status=none" -n '
fbt::vfs_*:entry
/pid == $target && arg2 == 1 && (probefunc == "vfs_read" || probefunc == "vfs_write")/
{
	@[probefunc] = count();
}
END
{
	printa("%s %@d\n", @);
}'
