#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which queries of PostgreSQL take longer than so many milliseconds?
 *
 *	clew dtrace -s postgres_slow_queries.d [MS]	until Ctrl-C; 100 ms when no number is given
 *
 * PID		the backend; those that start later are seen, too
 * TIME(ms)	from the query's arrival to its end
 * EXEC(ms)	of that, the execution: the rest is parsing, planning and sending
 * QUERY	its text
 *
 * The probes are PostgreSQL's own, of a server that was built with --enable-dtrace, as Debian's is.
 */
#pragma D option quiet
#pragma D option defaultargs
#pragma D option strsize=1024

BEGIN
{
	limit = ($1 == 0 ? 100 : $1) * 1000000;
	printf("%7s %10s %10s  %s\n", "PID", "TIME(ms)", "EXEC(ms)", "QUERY");
}

postgresql*:::query-start
{
	self->start = timestamp;
	self->executed = 0;
}

postgresql*:::query-execute-start
/self->start/
{
	self->begin = timestamp;
}

postgresql*:::query-execute-done
/self->begin/
{
	self->executed += timestamp - self->begin;
	self->begin = 0;
}

postgresql*:::query-done
/self->start && timestamp - self->start >= limit/
{
	this->elapsed = timestamp - self->start;
	printf("%7d %6d.%03d %6d.%03d  %s\n", pid, this->elapsed / 1000000,
	    this->elapsed / 1000 % 1000, self->executed / 1000000, self->executed / 1000 % 1000,
	    copyinstr(arg0));
}

postgresql*:::query-done
{
	self->start = 0;
	self->executed = 0;
}
