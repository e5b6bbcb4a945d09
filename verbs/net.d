/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help: bytes by program and peer; connects, accepts, refusals, retransmits
 * needs: root
 * every: 1s
 * parameter: take number 10 at most so many connects and their like
 *
 * Who sends and receives how much, to and from whom? Which connections of TCP are opened and
 * accepted, which are refused or time out, and which peers need packets twice? Bytes are those that
 * programs hand over to and get from their sockets. Retransmissions happen behind a program's back:
 * they are counted by peer, under "-". A peer of a UNIX socket, and of UDP without connect(2), has
 * no address here. Needs Linux 6.3 for bytes.
 *
 *	clew net
 *	clew net -n nginx --for 10s
 *	clew net --json --for 10s
 */
#pragma D option quiet
#pragma D option aggsortrev
#pragma D option strsize=64

inline int SYN_SENT = 2;
inline int CLOSED = 7;

sdt:::sock_send_length, sdt:::sock_recv_length
/(${traced}) && args[1] > 0 && args[0]->__sk_common.skc_family == AF_INET/
{
	this->peer = inet_ntoa(&args[0]->__sk_common.skc_daddr);
	this->port = ntohs(args[0]->__sk_common.skc_dport);
	@sent[execname, this->peer, this->port] = sum(probename == "sock_send_length" ? args[1] : 0);
	@received[execname, this->peer, this->port] =
	    sum(probename == "sock_send_length" ? 0 : args[1]);
}

sdt:::sock_send_length, sdt:::sock_recv_length
/(${traced}) && args[1] > 0 && args[0]->__sk_common.skc_family == AF_INET6/
{
	this->peer = inet_ntoa6(&args[0]->__sk_common.skc_v6_daddr);
	this->port = ntohs(args[0]->__sk_common.skc_dport);
	@sent[execname, this->peer, this->port] = sum(probename == "sock_send_length" ? args[1] : 0);
	@received[execname, this->peer, this->port] =
	    sum(probename == "sock_send_length" ? 0 : args[1]);
}

sdt:::sock_send_length, sdt:::sock_recv_length
/(${traced}) && args[1] > 0 && args[0]->__sk_common.skc_family == AF_UNIX/
{
	@sent[execname, "unix", 0] = sum(probename == "sock_send_length" ? args[1] : 0);
	@received[execname, "unix", 0] = sum(probename == "sock_send_length" ? 0 : args[1]);
}

/* The answer arrives in an interrupt, when any program may be running: hence the table. */
sdt:::inet_sock_set_state
/(${traced}) && args[2] == SYN_SENT/
{
	program[arg0] = execname;
}

sdt:::inet_sock_set_state
/args[1] == SYN_SENT && program[arg0] != "" && args[0]->__sk_common.skc_family == AF_INET/
{
	@connections[program[arg0], args[2] == CLOSED ? "refused" : "connect",
	    inet_ntoa(&args[0]->__sk_common.skc_daddr), ntohs(args[0]->__sk_common.skc_dport)] = count();
}

sdt:::inet_sock_set_state
/args[1] == SYN_SENT && program[arg0] != "" && args[0]->__sk_common.skc_family == AF_INET6/
{
	@connections[program[arg0], args[2] == CLOSED ? "refused" : "connect",
	    inet_ntoa6(&args[0]->__sk_common.skc_v6_daddr), ntohs(args[0]->__sk_common.skc_dport)] =
	    count();
}

sdt:::inet_sock_set_state
/args[1] == SYN_SENT/
{
	program[arg0] = 0;
}

syscall::accept:return, syscall::accept4:return
/(${traced}) && errno == 0/
{
	@connections[execname, "accept", "", 0] = count();
}

sdt:::tcp_retransmit_skb
/args[0]->__sk_common.skc_family == AF_INET/
{
	@connections["-", "retransmit", inet_ntoa(&args[0]->__sk_common.skc_daddr),
	    ntohs(args[0]->__sk_common.skc_dport)] = count();
}

sdt:::tcp_retransmit_skb
/args[0]->__sk_common.skc_family == AF_INET6/
{
	@connections["-", "retransmit", inet_ntoa6(&args[0]->__sk_common.skc_v6_daddr),
	    ntohs(args[0]->__sk_common.skc_dport)] = count();
}
