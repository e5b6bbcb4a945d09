#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On which locks do threads wait, and for how long? (Locks of libc sleep in futex(2).)
 *
 *	clew dtrace -s futex_waits.d -p PID		until Ctrl-C
 *	clew dtrace -s futex_waits.d -c COMMAND
 *
 * LOCK		address of the futex, or its name if it is a variable of the program
 * WAITS	how often a thread slept there
 * TOTAL(us)	how long in all; the table is sorted by it
 *
 * Locks that are taken without sleeping make no system call, and are not here.
 */
#pragma D option quiet
#pragma D option aggsortpos=1

BEGIN
{
	printf("Tracing futex waits of process %d\n", $target);
}

/* The low seven bits are the operation: 0 FUTEX_WAIT, 6 FUTEX_LOCK_PI, 9 FUTEX_WAIT_BITSET. */
syscall::futex:entry
/pid == $target && ((arg1 & 0x7f) == 0 || (arg1 & 0x7f) == 6 || (arg1 & 0x7f) == 9)/
{
	self->lock = arg0;
	self->start = timestamp;
}

syscall::futex:return
/self->start/
{
	@waits[usym(self->lock)] = count();
	@total[usym(self->lock)] = sum((timestamp - self->start) / 1000);
	self->lock = 0;
	self->start = 0;
}

END
{
	printf("%-40s %10s %12s\n", "LOCK", "WAITS", "TOTAL(us)");
	printa("%-40A %@10d %@12d\n", @waits, @total);
}
