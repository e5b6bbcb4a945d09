#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which system calls fail, with which error?
 *
 *	clew dtrace -s syscall_errors.d			until Ctrl-C, all programs
 *	clew dtrace -s syscall_errors.d -c COMMAND	this command only
 *
 * PROGRAM CALL	who called what
 * ERRNO	the number of the error: 2 = no such file, 11 = try again, 13 = permission denied;
 *		`errno -l` and errno(3) have the others
 * TIMES	how often
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing system calls that fail\n");
}

syscall:::return
/errno && (pid == $target || $target == 0) && pid != $pid/
{
	@errors[execname, probefunc, errno] = count();
}

END
{
	printf("%-16s %-20s %6s %10s\n", "PROGRAM", "CALL", "ERRNO", "TIMES");
	printa("%-16s %-20s %6d %@10d\n", @errors);
}
