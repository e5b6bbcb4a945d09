#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sizes does a program allocate, the rare ones as well as the frequent ones?
 *
 *	clew dtrace -s malloc_samples.d -c COMMAND
 *	clew dtrace -s malloc_samples.d -p PID		until Ctrl-C
 *
 * A line for the 1st, 2nd, 4th, 8th, ... call of malloc(3) with each size in each thread: a million
 * calls with one size are twenty lines, and none of the sizes that came once is missed. The columns
 * are the thread, the size, and how often it was asked for so far. sketch_count() is one of the
 * functions in C that come with Clew (docs/extensions.md); it runs inside the process.
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing malloc of process %d\n", $target);
	printf("%8s %12s %10s\n", "THREAD", "SIZE", "COUNT");
}

pid$target:libc.so.6:malloc:entry
{
	this->count = sketch_count(arg0);
}

pid$target:libc.so.6:malloc:entry
/(this->count & (this->count - 1)) == 0/
{
	printf("%8d %12d %10d\n", tid, arg0, this->count);
}
