#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which programs make the most system calls?
 *
 *	clew dtrace -s syscalls_by_program.d	until Ctrl-C
 *
 * The program's name, and its calls; the busiest last.
 */
#pragma D option quiet

BEGIN
{
	printf("Counting system calls, until Ctrl-C\n");
}

syscall:::entry
/pid != $pid/
{
	@calls[execname] = count();
}
