#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where does a program wait, and for how long?
 *
 *	clew dtrace -s off_cpu.d -p PID		until Ctrl-C
 *	clew dtrace -s off_cpu.d -c COMMAND
 *
 * User stacks from which the process left its CPU, with the microseconds until it was back; the
 * longest last.
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing waits of process %d\n", $target);
}

sched:::off-cpu
/pid == $target/
{
	self->start = timestamp;
}

sched:::on-cpu
/self->start/
{
	@waits[ustack(12)] = sum((timestamp - self->start) / 1000);
	self->start = 0;
}
