#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which code of a program allocates the most?
 *
 *	clew dtrace -s malloc_stacks.d -p PID		until Ctrl-C
 *
 * User stacks that led to malloc(3), with the bytes they asked for; the largest ten, the largest
 * last. It is whoever's malloc the program has: the C library's, or that of jemalloc and its like,
 * also where it is part of the program.
 */
#pragma D option quiet
#pragma D option zdefs

BEGIN
{
	printf("Tracing malloc of process %d, until Ctrl-C\n", $target);
}

pid$target::malloc:entry,
pid$target::je_malloc:entry
{
	@bytes[ustack(10)] = sum(arg0);
	is_seen = 1;
}

END
{
	trunc(@bytes, 10);
}

END
/!is_seen/
{
	printf("No call of malloc() was seen: an allocator of the program's own? See heap_growth.d\n");
}
