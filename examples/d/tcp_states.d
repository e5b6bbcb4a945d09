#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Through which states do TCP connections go?
 *
 *	clew dtrace -s tcp_states.d		until Ctrl-C
 *
 * FROM TO	states, by the names of netstat(8)
 * PORT		the local port
 * TIMES	how often
 */
#pragma D option quiet

inline string NAME[int s] =
    s == 1 ? "ESTABLISHED" : s == 2 ? "SYN_SENT" : s == 3 ? "SYN_RECV" : s == 4 ? "FIN_WAIT1" :
    s == 5 ? "FIN_WAIT2" : s == 6 ? "TIME_WAIT" : s == 7 ? "CLOSE" : s == 8 ? "CLOSE_WAIT" :
    s == 9 ? "LAST_ACK" : s == 10 ? "LISTEN" : s == 11 ? "CLOSING" : "NEW_SYN_RECV";

BEGIN
{
	printf("Tracing states of TCP connections, until Ctrl-C\n");
}

sdt:::inet_sock_set_state
{
	@states[NAME[args[1]], NAME[args[2]], args[0]->__sk_common.skc_num] = count();
}

END
{
	printf("%-12s %-12s %5s %8s\n", "FROM", "TO", "PORT", "TIMES");
	printa("%-12s %-12s %5d %@8d\n", @states);
}
