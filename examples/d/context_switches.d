#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gives its CPU away, and who is made to?
 *
 *	clew dtrace -s context_switches.d	until Ctrl-C
 *
 * PROGRAM PID	the process
 * SLEPT	times that it waited for something
 * PREEMPTED	times that it was put aside for another; many mean that CPUs are short
 */
#pragma D option quiet

BEGIN
{
	printf("Counting context switches, until Ctrl-C\n");
}

sched:::sleep
{
	@slept[execname, pid] = count();
}

sched:::preempt
{
	@preempted[execname, pid] = count();
}

END
{
	printf("%-16s %7s %10s %10s\n", "PROGRAM", "PID", "SLEPT", "PREEMPTED");
	printa("%-16s %7d %@10d %@10d\n", @slept, @preempted);
}
