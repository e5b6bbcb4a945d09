#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From and to which files do the bytes go?
 *
 *	clew dtrace -s bytes_by_file.d			until Ctrl-C, all programs
 *	clew dtrace -s bytes_by_file.d -c COMMAND	this command only
 *
 * PROGRAM	who reads or writes
 * R/W		r or w
 * FD		the descriptor
 * FILE		the file of the descriptor; sockets and pipes have none
 * BYTES	how many in all
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing bytes by file\n");
}

syscall::read:entry, syscall::write:entry
/(pid == $target || $target == 0) && pid != $pid/
{
	self->fd = arg0 + 1;
}

syscall::read:return, syscall::write:return
/self->fd && errno == 0/
{
	@bytes[execname, probefunc == "read" ? "r" : "w", self->fd - 1,
	    fds[self->fd - 1].fi_pathname] = sum(arg1);
}

syscall::read:return, syscall::write:return
{
	self->fd = 0;
}

END
{
	printf("%-16s %-4s %4s %-40s %12s\n", "PROGRAM", "R/W", "FD", "FILE", "BYTES");
	printa("%-16s %-4s %4d %-40s %@12d\n", @bytes);
}
