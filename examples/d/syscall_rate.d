#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many system calls happen each second, and who makes the most?
 *
 *	clew dtrace -s syscall_rate.d		a table every second, until Ctrl-C
 *
 * PROGRAM	its name
 * CALLS/S	calls in the last second; the ten busiest
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing...\n");
}

syscall:::entry
/pid != $pid/
{
	@rate[execname] = count();
}

tick-1s
{
	trunc(@rate, 10);
	printf("\n%Y\n%-16s %10s\n", walltimestamp, "PROGRAM", "CALLS/S");
	printa("%-16s %@10d\n", @rate);
	trunc(@rate);
}

END
{
	trunc(@rate);
}
