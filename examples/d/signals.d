#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who sends which signals to whom?
 *
 *	clew dtrace -s signals.d		until Ctrl-C
 *
 * SENDER PID	who
 * SIGNAL	its number; kill -l has the names
 * RECEIVER PID	to whom
 */
#pragma D option quiet

BEGIN
{
	printf("%-16s %7s %6s %-16s %7s\n", "SENDER", "PID", "SIGNAL", "RECEIVER", "PID");
}

proc:::signal-send
{
	printf("%-16s %7d %6d %-16s %7d\n", execname, pid, args[2], args[1]->pr_fname, args[1]->pr_pid);
}
