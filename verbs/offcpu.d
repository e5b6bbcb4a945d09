/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help: where threads wait, and how long; with --svg or --folded by stack
 * needs: root
 * every: 1s
 * parameter: least duration 1us only waits that take longer
 * parameter: take number 10 at most so many stacks
 *
 * Where do threads leave their processor, and for how long? What is counted is the time from there
 * until they run again, in nanoseconds: waits for locks, disks, networks and timers, and for a
 * processor that is free. A wait counts when it ends.
 *
 *	clew offcpu -p PID
 *	clew offcpu -n postgres --for 10s -o waits.svg
 *	clew offcpu -n redis-server --least 1ms
 */
#pragma D option quiet
#pragma D option aggsortrev

sched:::off-cpu
/${traced} && pid != 0/
{
	self->since = timestamp;
}

sched:::on-cpu
/self->since && timestamp - self->since >= ${least}/
{
	@waits[execname, ustack(32)] = sum(timestamp - self->since);
}

sched:::on-cpu
{
	self->since = 0;
}
