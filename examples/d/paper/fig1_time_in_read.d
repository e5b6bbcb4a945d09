#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figure 1 of the DTrace paper: how long each read(2) of each thread takes, by a thread-local
 * variable. Nothing renamed.
 *
 *	clew dtrace -q -s fig1_time_in_read.d		until Ctrl-C
 *
 * PID/TID, and nanoseconds.
 */
syscall::read:entry
{
	self->t = timestamp;
}

syscall::read:return
/self->t/
{
	printf("%d/%d spent %d nsecs in read\n",
	    pid, tid, timestamp - self->t);
}
