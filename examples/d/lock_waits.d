#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For which locks do the threads of a program wait, how long, and who asks for them?
 *
 *	clew dtrace -s lock_waits.d -c COMMAND
 *	clew dtrace -s lock_waits.d -p PID		until Ctrl-C
 *
 * KIND		mutex, read (of a read-write lock) or write
 * LOCK		its address
 * TAKEN	how often it was taken, WAITS how often a thread had to sleep for that
 * SLEPT(us)	how long they slept together
 *
 * Then the stacks that slept longest. The locks are those of the C library (pthread).
 */
#pragma D option quiet
#pragma D option ustackframes=8

plockstat$target:::mutex-acquire
{
	@taken["mutex", arg0] = count();
}

plockstat$target:::rw-acquire
{
	@taken[arg1 ? "write" : "read", arg0] = count();
}

plockstat$target:::mutex-block,
plockstat$target:::rw-block
{
	self->since = timestamp;
}

plockstat$target:::mutex-blocked
/self->since/
{
	@waits["mutex", arg0] = count();
	@slept["mutex", arg0] = sum((timestamp - self->since) / 1000);
	@stacks["mutex", arg0, ustack()] = sum((timestamp - self->since) / 1000);
	self->since = 0;
}

plockstat$target:::rw-blocked
/self->since/
{
	this->kind = arg1 ? "write" : "read";
	@waits[this->kind, arg0] = count();
	@slept[this->kind, arg0] = sum((timestamp - self->since) / 1000);
	@stacks[this->kind, arg0, ustack()] = sum((timestamp - self->since) / 1000);
	self->since = 0;
}

END
{
	printf("%-6s %-18s %10s %10s %12s\n", "KIND", "LOCK", "TAKEN", "WAITS", "SLEPT(us)");
	printa("%-6s 0x%-16x %@10d %@10d %@12d\n", @taken, @waits, @slept);
	trunc(@stacks, 5);
	printa("\n%s 0x%x%k%@16d us\n", @stacks);
}
