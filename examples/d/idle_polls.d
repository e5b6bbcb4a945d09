#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which programs ask whether there is something to do, and are told that there is not?
 *
 *	clew dtrace -s idle_polls.d		until Ctrl-C
 *
 * PROGRAM PID	who polls
 * CALL		poll, ppoll, select, pselect6, epoll_wait, epoll_pwait
 * POLLS	how often
 * IDLE		how often nothing was ready: the time was up
 */
#pragma D option quiet
#pragma D option aggsortpos=1

BEGIN
{
	printf("Tracing polls, until Ctrl-C\n");
}

syscall::poll:return, syscall::ppoll:return, syscall::select:return, syscall::pselect6:return,
syscall::epoll_wait:return, syscall::epoll_pwait:return
{
	@polls[execname, pid, probefunc] = count();
	@idle[execname, pid, probefunc] = sum(errno == 0 && arg1 == 0 ? 1 : 0);
}

END
{
	printf("%-16s %7s %-12s %8s %8s\n", "PROGRAM", "PID", "CALL", "POLLS", "IDLE");
	printa("%-16s %7d %-12s %@8d %@8d\n", @polls, @idle);
}
