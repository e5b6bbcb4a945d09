#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where does a program spend its time in the kernel: which calls take long, and how long?
 *
 *	clew dtrace -s syscall_latency.d -c COMMAND
 *	clew dtrace -s syscall_latency.d -p PID		until Ctrl-C
 *
 * CALL		the system call
 * CALLS	how often
 * AVG(ns)	its average duration; MAX(ns) the longest
 * TOTAL(us)	all of them together; the table is sorted by it
 *
 * Time is from entry to return: a call that waits is slow, too.
 */
#pragma D option quiet
#pragma D option aggsortpos=3

syscall:::entry
/pid == $target/
{
	self->start = timestamp;
}

syscall:::return
/self->start/
{
	this->elapsed = timestamp - self->start;
	@calls[probefunc] = count();
	@average[probefunc] = avg(this->elapsed);
	@longest[probefunc] = max(this->elapsed);
	@total[probefunc] = sum(this->elapsed);
	self->start = 0;
}

END
{
	normalize(@total, 1000);
	printf("%-20s %10s %12s %12s %12s\n", "CALL", "CALLS", "AVG(ns)", "MAX(ns)", "TOTAL(us)");
	printa("%-20s %@10d %@12d %@12d %@12d\n", @calls, @average, @longest, @total);
}
