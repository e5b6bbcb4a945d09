#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long does one function of a program take?
 *
 *	clew dtrace -s function_latency.d -p PID MODULE FUNCTION		until Ctrl-C
 *	clew dtrace -s function_latency.d -c COMMAND MODULE FUNCTION
 *
 * A distribution of nanoseconds from its entry to its return. Functions that call themselves are
 * measured by their outermost call.
 */
#pragma D option quiet

BEGIN
{
	printf("Timing a function of process %d\n", $target);
}

pid$target:$1:$2:entry
/self->depth++ == 0/
{
	self->start = timestamp;
}

pid$target:$1:$2:return
/self->depth && --self->depth == 0/
{
	@time[probefunc] = quantize(timestamp - self->start);
	self->start = 0;
}
