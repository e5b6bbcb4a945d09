#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who deletes and renames files?
 *
 *	clew dtrace -s deletions.d		until Ctrl-C
 *
 * PID PROGRAM	who
 * CALL		unlink, unlinkat, rmdir, rename, renameat, renameat2
 * ERRNO	0, or why it failed
 * PATH		which file; of a rename, its old name
 */
#pragma D option quiet

BEGIN
{
	printf("%7s %-16s %-10s %5s %s\n", "PID", "PROGRAM", "CALL", "ERRNO", "PATH");
}

syscall::unlink:entry, syscall::rmdir:entry, syscall::rename:entry
{
	self->path = arg0;
}

syscall::unlinkat:entry, syscall::renameat:entry, syscall::renameat2:entry
{
	self->path = arg1;
}

syscall::unlink:return, syscall::rmdir:return, syscall::rename:return,
syscall::unlinkat:return, syscall::renameat:return, syscall::renameat2:return
/self->path/
{
	printf("%7d %-16s %-10s %5d %s\n", pid, execname, probefunc, errno, copyinstr(self->path));
	self->path = 0;
}
