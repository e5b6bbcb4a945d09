#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For how long does a program hold its mutexes?
 *
 *	clew dtrace -s mutex_holds.d -p PID		until Ctrl-C
 *	clew dtrace -s mutex_holds.d -c COMMAND
 *
 * For each mutex a distribution of nanoseconds from its lock to its unlock.
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing mutexes of process %d\n", $target);
}

plockstat$target:::mutex-acquire
{
	self->held[arg0] = timestamp;
}

plockstat$target:::mutex-release
/self->held[arg0]/
{
	@held[usym(arg0)] = quantize(timestamp - self->held[arg0]);
	self->held[arg0] = 0;
}
