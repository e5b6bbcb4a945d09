#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which SQL statements does a program give to SQLite, and how long do they run?
 *
 *	clew dtrace -s sqlite_statements.d -c COMMAND
 *	clew dtrace -s sqlite_statements.d -p PID	until Ctrl-C
 *
 * ROWS+1	steps of the statement: one for each row, and one that says it is done
 * TIME(us)	all steps together
 * SQL		its text, from where it begins: a command of several statements shows the rest, too
 */
#pragma D option quiet
#pragma D option aggsortpos=1

pid$target::sqlite3_prepare_v2:entry
{
	self->text = arg1;
	self->result = arg3;
}

/* *ppStmt, the fourth argument, has the statement when the call returns. */
pid$target::sqlite3_prepare_v2:return
/self->result/
{
	sql[*(uintptr_t *)copyin(self->result, sizeof(uintptr_t))] = copyinstr(self->text);
	self->result = 0;
	self->text = 0;
}

pid$target::sqlite3_step:entry
{
	self->statement = arg0;
	self->start = timestamp;
}

pid$target::sqlite3_step:return
/self->start/
{
	@steps[sql[self->statement]] = count();
	@time[sql[self->statement]] = sum((timestamp - self->start) / 1000);
	self->statement = 0;
	self->start = 0;
}

END
{
	printf("%8s %10s %s\n", "ROWS+1", "TIME(us)", "SQL");
	printa("%@8d %@10d %s\n", @steps, @time);
}
