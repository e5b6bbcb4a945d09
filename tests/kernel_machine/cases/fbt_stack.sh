#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stack() in a function of the kernel begins with the function and its callers.
# output:
# vfs_read
# ksys_read
# do_syscall_64
"$CLEW" dtrace -q -c "dd if=/dev/zero of=/dev/null bs=1 count=1 status=none" -n '
fbt::vfs_read:entry
/pid == $target && arg2 == 1/
{
	stack(4);
}' | sed -n 's/^ *[a-z]*`\(vfs_read\|ksys_read\|do_syscall_64\).*/\1/p'
