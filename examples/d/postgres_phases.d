#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where does PostgreSQL spend the time of its queries: parsing, rewriting, planning or executing?
 *
 *	clew dtrace -s postgres_phases.d		until Ctrl-C
 *
 * PHASE	of a query; one query may have several statements, and so more of each
 * COUNT	how often
 * AVG(us)	its average duration; SUM(us) all together
 *
 * The last lines say how many transactions were committed and rolled back.
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing all PostgreSQL servers, until Ctrl-C\n");
}

postgresql*:::query-parse-start,
postgresql*:::query-rewrite-start,
postgresql*:::query-plan-start,
postgresql*:::query-execute-start
{
	self->start[substr(probename, 0, rindex(probename, "-"))] = timestamp;
}

postgresql*:::query-parse-done,
postgresql*:::query-rewrite-done,
postgresql*:::query-plan-done,
postgresql*:::query-execute-done
/self->start[substr(probename, 0, rindex(probename, "-"))]/
{
	this->phase = substr(probename, 0, rindex(probename, "-"));
	this->elapsed = (timestamp - self->start[this->phase]) / 1000;
	@count[this->phase] = count();
	@average[this->phase] = avg(this->elapsed);
	@sum[this->phase] = sum(this->elapsed);
	self->start[this->phase] = 0;
}

postgresql*:::transaction-commit
{
	@committed = count();
}

postgresql*:::transaction-abort
{
	@aborted = count();
}

END
{
	printf("%-16s %8s %10s %10s\n", "PHASE", "COUNT", "AVG(us)", "SUM(us)");
	printa("%-16s %@8d %@10d %@10d\n", @count, @average, @sum);
	printa("committed: %@d\n", @committed);
	printa("rolled back: %@d\n", @aborted);
}
