#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files do programs open, and which opens fail?
 *
 *	clew dtrace -s opens.d			until Ctrl-C, all programs
 *	clew dtrace -s opens.d -c COMMAND	this command only
 *
 * PID PROGRAM	who opens
 * RESULT	the descriptor, or the errno as a negative number
 * PATH		as the program gave it
 *
 * The path is read when the call returns: at its entry it may lie in a page that nobody has
 * touched, which a probe cannot fetch.
 */
#pragma D option quiet

BEGIN
{
	printf("%7s %-16s %6s %s\n", "PID", "PROGRAM", "RESULT", "PATH");
}

syscall::open:entry
/pid == $target || $target == 0/
{
	self->path = arg0;
}

syscall::openat:entry,
syscall::openat2:entry
/pid == $target || $target == 0/
{
	self->path = arg1;
}

syscall::open*:return
/self->path/
{
	printf("%7d %-16s %6d %s\n", pid, execname, errno ? -errno : (int)arg1, copyinstr(self->path));
	self->path = 0;
}
