#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which TCP connections do programs open, and how long until the other side answers?
 *
 *	clew dtrace -s tcp_connects.d		until Ctrl-C
 *
 * PID PROGRAM	who connects
 * ADDRESS PORT	to whom
 * RESULT	ok, or refused: the connection never came about
 * TIME(us)	from the first packet to the answer
 */
#pragma D option quiet

inline int ESTABLISHED = 1;
inline int SYN_SENT = 2;
inline int CLOSED = 7;

BEGIN
{
	printf("%7s %-16s %-24s %5s %-8s %10s\n", "PID", "PROGRAM", "ADDRESS", "PORT", "RESULT",
	    "TIME(us)");
}

/* The answer arrives in an interrupt, when any program may be running: hence the tables. */
sdt:::inet_sock_set_state
/args[2] == SYN_SENT/
{
	start[arg0] = timestamp;
	program[arg0] = execname;
	process[arg0] = pid;
}

sdt:::inet_sock_set_state
/args[1] == SYN_SENT && start[arg0] && args[0]->__sk_common.skc_family == AF_INET/
{
	printf("%7d %-16s %-24s %5d %-8s %10d\n", process[arg0], program[arg0],
	    inet_ntoa(&args[0]->__sk_common.skc_daddr), ntohs(args[0]->__sk_common.skc_dport),
	    args[2] == ESTABLISHED ? "ok" : "refused", (timestamp - start[arg0]) / 1000);
}

sdt:::inet_sock_set_state
/args[1] == SYN_SENT && start[arg0] && args[0]->__sk_common.skc_family == AF_INET6/
{
	printf("%7d %-16s %-24s %5d %-8s %10d\n", process[arg0], program[arg0],
	    inet_ntoa6(&args[0]->__sk_common.skc_v6_daddr), ntohs(args[0]->__sk_common.skc_dport),
	    args[2] == ESTABLISHED ? "ok" : "refused", (timestamp - start[arg0]) / 1000);
}

sdt:::inet_sock_set_state
/args[1] == SYN_SENT/
{
	start[arg0] = 0;
	program[arg0] = 0;
	process[arg0] = 0;
}
