#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who sleeps by the clock, how often and for how long? Short sleeps in a loop are polling.
 *
 *	clew dtrace -s sleeps.d			until Ctrl-C
 *
 * For each program and call, a distribution of microseconds really slept.
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing sleeps, until Ctrl-C\n");
}

syscall::nanosleep:entry, syscall::clock_nanosleep:entry
{
	self->start = timestamp;
}

syscall::nanosleep:return, syscall::clock_nanosleep:return
/self->start/
{
	@slept[execname, probefunc] = quantize((timestamp - self->start) / 1000);
	self->start = 0;
}
