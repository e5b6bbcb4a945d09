#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which threads use the CPUs, and for how long at a stretch?
 *
 *	clew dtrace -s on_cpu.d			until Ctrl-C
 *
 * PROGRAM PID TID	the thread
 * TIMES		how often it was put on a CPU
 * AVG(us)		the average stretch
 * TOTAL(us)		its time on CPUs; the table is sorted by it
 */
#pragma D option quiet
#pragma D option aggsortpos=2

BEGIN
{
	printf("Tracing time on CPUs, until Ctrl-C\n");
}

sched:::on-cpu
{
	self->start = timestamp;
}

sched:::off-cpu
/self->start/
{
	this->stretch = timestamp - self->start;
	@times[execname, pid, tid] = count();
	@average[execname, pid, tid] = avg(this->stretch);
	@total[execname, pid, tid] = sum(this->stretch);
	self->start = 0;
}

END
{
	normalize(@average, 1000);
	normalize(@total, 1000);
	printf("%-16s %7s %7s %8s %12s %12s\n", "PROGRAM", "PID", "TID", "TIMES", "AVG(us)",
	    "TOTAL(us)");
	printa("%-16s %7d %7d %@8d %@12d %@12d\n", @times, @average, @total);
}
