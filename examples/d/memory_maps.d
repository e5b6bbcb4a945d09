#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What does a program map into its memory?
 *
 *	clew dtrace -s memory_maps.d -c COMMAND
 *	clew dtrace -s memory_maps.d -p PID		until Ctrl-C
 *
 * ADDRESS	where, or the errno as a negative number
 * BYTES	how much
 * PROT		1 read, 2 write, 4 execute
 * FILE		of which file; nothing for memory without one
 */
#pragma D option quiet

BEGIN
{
	printf("%16s %12s %4s %s\n", "ADDRESS", "BYTES", "PROT", "FILE");
}

syscall::mmap:entry
/pid == $target/
{
	self->bytes = arg1;
	self->protection = arg2;
	self->fd = (int)arg4;
}

syscall::mmap:return
/self->bytes/
{
	printf("%16x %12d %4d %s\n", arg1, self->bytes, self->protection,
	    self->fd < 0 ? "" : fds[self->fd].fi_pathname);
	self->bytes = 0;
	self->protection = 0;
	self->fd = 0;
}
