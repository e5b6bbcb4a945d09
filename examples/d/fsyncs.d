#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits for the disk with fsync(2) and its kin, for how long, and for which file?
 *
 *	clew dtrace -s fsyncs.d			until Ctrl-C
 *
 * PID PROGRAM	who called
 * CALL		fsync, fdatasync, or sync_file_range
 * TIME(us)	how long it took
 * FILE		the file
 */
#pragma D option quiet

BEGIN
{
	printf("%7s %-16s %-16s %10s %s\n", "PID", "PROGRAM", "CALL", "TIME(us)", "FILE");
}

syscall::fsync:entry, syscall::fdatasync:entry, syscall::sync_file_range:entry
{
	self->fd = arg0;
	self->start = timestamp;
}

syscall::fsync:return, syscall::fdatasync:return, syscall::sync_file_range:return
/self->start/
{
	printf("%7d %-16s %-16s %10d %s\n", pid, execname, probefunc, (timestamp - self->start) / 1000,
	    fds[self->fd].fi_pathname);
	self->fd = 0;
	self->start = 0;
}
