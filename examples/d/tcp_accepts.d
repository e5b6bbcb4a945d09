#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who connects to the servers on this machine?
 *
 *	clew dtrace -s tcp_accepts.d		until Ctrl-C
 *
 * PID PROGRAM	the server
 * FD		the descriptor of the new connection
 * ADDRESS PORT	the client; connections of IPv4 only
 */
#pragma D option quiet

BEGIN
{
	printf("%7s %-16s %4s %-16s %5s\n", "PID", "PROGRAM", "FD", "ADDRESS", "PORT");
}

syscall::accept:entry, syscall::accept4:entry
{
	self->address = arg1;
}

syscall::accept:return, syscall::accept4:return
/self->address && errno == 0/
{
	this->client = (struct sockaddr_in *)copyin(self->address, sizeof(struct sockaddr_in));
	self->ipv4 = this->client->sin_family == AF_INET;
}

syscall::accept:return, syscall::accept4:return
/self->ipv4/
{
	this->client = (struct sockaddr_in *)copyin(self->address, sizeof(struct sockaddr_in));
	printf("%7d %-16s %4d %-16s %5d\n", pid, execname, arg1,
	    inet_ntoa(&this->client->sin_addr.s_addr), ntohs(this->client->sin_port));
}

syscall::accept:return, syscall::accept4:return
{
	self->address = 0;
	self->ipv4 = 0;
}
