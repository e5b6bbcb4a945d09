#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which programs are looked for where they are not? (A shell tries all folders of PATH.)
 *
 *	clew dtrace -s exec_failures.d		until Ctrl-C
 *
 * PROGRAM	who looked
 * ERRNO	2 = no such file, 13 = not executable
 * PATH		what it tried to execute
 * TIMES	how often
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing exec calls that fail, until Ctrl-C\n");
}

syscall::execve:entry
{
	self->path = arg0;
}

syscall::execve:return
/self->path && errno/
{
	@failures[execname, errno, copyinstr(self->path)] = count();
}

syscall::execve:return
{
	self->path = 0;
}

END
{
	printf("%-16s %5s %-40s %6s\n", "PROGRAM", "ERRNO", "PATH", "TIMES");
	printa("%-16s %5d %-40s %@6d\n", @failures);
}
