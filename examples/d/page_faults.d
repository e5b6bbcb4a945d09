#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which programs touch memory that they do not have yet?
 *
 *	clew dtrace -s page_faults.d		until Ctrl-C
 *
 * PROGRAM PID	the process
 * FAULTS	page faults: the first touch of new memory, copies after fork(2), pages of files
 */
#pragma D option quiet

BEGIN
{
	printf("Counting page faults, until Ctrl-C\n");
}

vminfo:::as_fault
{
	@faults[execname, pid] = count();
}

END
{
	printf("%-16s %7s %10s\n", "PROGRAM", "PID", "FAULTS");
	printa("%-16s %7d %@10d\n", @faults);
}
