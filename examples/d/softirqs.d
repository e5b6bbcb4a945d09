#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much time do the kernel's soft interrupts take from programs?
 *
 *	clew dtrace -s softirqs.d		until Ctrl-C
 *
 * KIND		timer, network, disk...
 * TIMES	how often
 * TOTAL(us)	how long in all
 */
#pragma D option quiet
#pragma D option aggsortpos=1

inline string KIND[int n] =
    n == 0 ? "hi" : n == 1 ? "timer" : n == 2 ? "net_tx" : n == 3 ? "net_rx" : n == 4 ? "block" :
    n == 5 ? "irq_poll" : n == 6 ? "tasklet" : n == 7 ? "sched" : n == 8 ? "hrtimer" : "rcu";

BEGIN
{
	printf("Tracing soft interrupts, until Ctrl-C\n");
}

/* A soft interrupt runs on the stack of any thread, but never leaves its CPU. */
sdt:::softirq_entry
{
	start[cpu] = timestamp;
}

sdt:::softirq_exit
/start[cpu]/
{
	@times[KIND[args[0]]] = count();
	@total[KIND[args[0]]] = sum(timestamp - start[cpu]);
	start[cpu] = 0;
}

END
{
	normalize(@total, 1000);
	printf("%-10s %10s %12s\n", "KIND", "TIMES", "TOTAL(us)");
	printa("%-10s %@10d %@12d\n", @times, @total);
}
