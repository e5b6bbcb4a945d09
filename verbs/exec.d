/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help: programs that begin and end: arguments, exit status, life time
 * needs: root
 *
 * Which programs are started, by whom, with which arguments, and how do they end? A line when a
 * program begins, and one when its process ends: with its status, or the signal that killed it, and
 * how long it ran. Of a process (-p) all that come from it; of a command (-c) the command, too. A
 * command line is cut at 80 bytes.
 *
 *	clew exec
 *	clew exec -c 'make -k'
 *	clew exec -p PID --json
 */
#pragma D option quiet
#pragma D option strsize=128
#pragma D option dynvarsize=8m

BEGIN
{
	begun = timestamp;
}

proc:::exec-success
/${family}/
{
	born[pid] = timestamp;
	words[pid] = stringof(curpsinfo->pr_psargs);
	printf("%10d ms %-6s %7d %7d %12s %10s  %s\n", (timestamp - begun) / 1000000, "begins", ppid,
	    pid, "", "", curpsinfo->pr_psargs);
}

proc:::exit
/born[pid]/
{
	printf("%10d ms %-6s %7d %7d %9d us %6s %3d  %s\n", (timestamp - begun) / 1000000, "ends",
	    ppid, pid, (timestamp - born[pid]) / 1000, args[0] == CLD_EXITED ? "status" : "signal",
	    args[0] == CLD_EXITED ? (curthread->exit_code >> 8) & 0xff : curthread->exit_code & 0x7f,
	    words[pid]);
	born[pid] = 0;
	words[pid] = 0;
}
