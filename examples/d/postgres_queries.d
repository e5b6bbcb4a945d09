#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which queries of PostgreSQL are slow?
 *
 *	clew dtrace -s postgres_queries.d 10	queries of 10 ms and more, until Ctrl-C
 *
 * PID		the server process
 * TIME(us)	from the arrival of the query to its end
 * QUERY	its text
 *
 * The server must have been built with --enable-dtrace, as Debian's is.
 */
#pragma D option quiet
#pragma D option strsize=1024

BEGIN
{
	printf("%7s %10s %s\n", "PID", "TIME(us)", "QUERY");
}

postgresql*:::query-start
{
	self->query = copyinstr(arg0);
	self->start = timestamp;
}

postgresql*:::query-done
/self->start && timestamp - self->start >= $1 * 1000000/
{
	printf("%7d %10d %s\n", pid, (timestamp - self->start) / 1000, self->query);
}

postgresql*:::query-done
{
	self->query = 0;
	self->start = 0;
}
