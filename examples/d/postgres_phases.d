#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What do queries of PostgreSQL spend their time on: parsing, rewriting, planning or executing?
 *
 *	clew dtrace -s postgres_phases.d	until Ctrl-C
 *
 * For each phase a distribution of microseconds.
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing phases of queries, until Ctrl-C\n");
}

postgresql*:::query-parse-start, postgresql*:::query-rewrite-start,
postgresql*:::query-plan-start, postgresql*:::query-execute-start
{
	self->start = timestamp;
}

postgresql*:::query-parse-done, postgresql*:::query-rewrite-done,
postgresql*:::query-plan-done, postgresql*:::query-execute-done
/self->start/
{
	@phases[probename] = quantize((timestamp - self->start) / 1000);
	self->start = 0;
}
