#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes end, after how long, and how?
 *
 *	clew dtrace -s exits.d			until Ctrl-C
 *
 * PID PROGRAM	the process
 * LIFE(ms)	since its creation; - when that was before the script
 * HOW		exited, killed or dumped
 * CODE		the exit status, or the signal
 */
#pragma D option quiet

BEGIN
{
	printf("%7s %-16s %10s %-7s %5s\n", "PID", "PROGRAM", "LIFE(ms)", "HOW", "CODE");
}

proc:::create
{
	born[args[0]->pr_pid] = timestamp;
}

proc:::exit
{
	printf("%7d %-16s %10s %-7s %5d\n", pid, execname,
	    born[pid] ? lltostr((timestamp - born[pid]) / 1000000) : "-",
	    args[0] == CLD_EXITED ? "exited" : args[0] == CLD_KILLED ? "killed" : "dumped",
	    args[0] == CLD_EXITED ? curthread->exit_code >> 8 : curthread->exit_code & 0x7f);
	born[pid] = 0;
}
