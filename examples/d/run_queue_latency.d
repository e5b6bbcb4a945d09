#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long do threads wait for a CPU after they became runnable?
 *
 *	clew dtrace -s run_queue_latency.d		until Ctrl-C, all programs
 *
 * For each program, a distribution of nanoseconds from wakeup to running. Rows beyond a millisecond
 * (1048576) mean that CPUs are short, or that others have a higher priority.
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing waits for a CPU, until Ctrl-C\n");
}

sdt:::sched_wakeup, sdt:::sched_wakeup_new
{
	woken[args[0]->pid] = timestamp;
}

sched:::on-cpu
/woken[tid]/
{
	@latency[execname] = quantize(timestamp - woken[tid]);
	woken[tid] = 0;
}
