#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who creates processes, and how many?
 *
 *	clew dtrace -s forks.d			until Ctrl-C
 *
 * PROGRAM PID	the parent
 * CHILDREN	processes that it created
 */
#pragma D option quiet

BEGIN
{
	printf("Counting new processes, until Ctrl-C\n");
}

proc:::create
{
	@children[execname, pid] = count();
}

END
{
	printf("%-16s %7s %10s\n", "PROGRAM", "PID", "CHILDREN");
	printa("%-16s %7d %@10d\n", @children);
}
