#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which programs are started, by whom, with which arguments?
 *
 *	clew dtrace -s execs.d			until Ctrl-C
 *
 * PPID PID	the parent and the process
 * UID		its user
 * ARGUMENTS	its command line, the first 80 characters
 */
#pragma D option quiet

BEGIN
{
	printf("%7s %7s %5s %s\n", "PPID", "PID", "UID", "ARGUMENTS");
}

proc:::exec-success
{
	printf("%7d %7d %5d %s\n", ppid, pid, uid, curpsinfo->pr_psargs);
}
