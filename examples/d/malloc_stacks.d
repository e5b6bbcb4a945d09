#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which code of a program allocates the most?
 *
 *	clew dtrace -s malloc_stacks.d -p PID		until Ctrl-C
 *
 * User stacks that led to malloc(3), with the bytes they asked for; the largest ten, the largest
 * last.
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing malloc of process %d, until Ctrl-C\n", $target);
}

pid$target:libc.so.6:malloc:entry
{
	@bytes[ustack(10)] = sum(arg0);
}

END
{
	trunc(@bytes, 10);
}
