#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When does a program's heap grow, and from where?
 *
 *	clew dtrace -s heap_growth.d -p PID		until Ctrl-C
 *	clew dtrace -s heap_growth.d -c COMMAND
 *
 * User stacks that led to brk(2), or to mmap(2) of memory without a file (as jemalloc and its like
 * do, and the C library for what is large), with the bytes that the heap grew by; the largest last.
 */
#pragma D option quiet

uint64_t heap_end[pid_t];

BEGIN
{
	printf("Tracing the heap of process %d\n", $target);
}

syscall::brk:entry
/pid == $target/
{
	self->traced = 1;
}

/* Memory that can be used, of no file: MAP_ANONYMOUS. */
syscall::mmap:entry
/pid == $target && (arg3 & 0x20) != 0 && arg2 != 0/
{
	@grown[ustack(12)] = sum(arg1);
	has_grown = 1;
}

syscall::brk:return
/self->traced && heap_end[pid] && arg1 > heap_end[pid]/
{
	@grown[ustack(12)] = sum(arg1 - heap_end[pid]);
	has_grown = 1;
}

syscall::brk:return
/self->traced/
{
	heap_end[pid] = arg1;
	self->traced = 0;
}

END
/!has_grown/
{
	printf("The heap did not grow: what was freed was enough\n");
}
