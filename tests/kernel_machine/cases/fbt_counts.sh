#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fbt sees as many calls of vfs_read as a program makes: dd reads one byte 37 times, and whatever
# its loader reads is longer.
# output:
# 37 entries, 37 returns of 37 bytes, all of zero
#
"$CLEW" dtrace -q -c "dd if=/dev/zero of=/dev/null bs=1 count=37 status=none" -n '
fbt::vfs_read:entry
/pid == $target && arg2 == 1/
{
	self->in = 1;
	entries++;
	named += stringof(args[0]->f_path.dentry->d_name.name) == "zero";
}
fbt::vfs_read:return
/self->in/
{
	self->in = 0;
	returns++;
	bytes += arg1;
	offsets += arg0;
}
END
{
	printf("%d entries, %d returns of %d bytes, %s\n", entries, returns, bytes,
	    named == entries && offsets == 0 ? "all of zero" : "not all");
}'
