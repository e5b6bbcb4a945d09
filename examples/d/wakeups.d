#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who wakes whom?
 *
 *	clew dtrace -s wakeups.d		until Ctrl-C
 *
 * WAKER	the program that ran when the wakeup happened; swapper is an interrupt on an idle CPU
 * WOKEN	the program that became runnable
 * TIMES	how often
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing wakeups, until Ctrl-C\n");
}

sched:::wakeup
{
	@wakeups[execname, stringof(args[1]->pr_fname)] = count();
}

END
{
	printf("%-16s %-16s %10s\n", "WAKER", "WOKEN", "TIMES");
	printa("%-16s %-16s %@10d\n", @wakeups);
}
