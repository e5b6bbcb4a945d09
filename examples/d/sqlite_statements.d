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

/* SQLite asks itself, too: a statement may need others, to read the schema. */
pid$target::sqlite3_prepare_v2:entry
{
	self->prepares++;
	self->text[self->prepares] = arg1;
	self->result[self->prepares] = arg3;
}

/* *ppStmt, the fourth argument, has the statement when the call returns. */
pid$target::sqlite3_prepare_v2:return
/self->prepares/
{
	this->result = self->result[self->prepares];
	sql[*(uintptr_t *)copyin(this->result, sizeof(uintptr_t))] =
	    copyinstr(self->text[self->prepares]);
	self->result[self->prepares] = 0;
	self->text[self->prepares] = 0;
	self->prepares--;
}

pid$target::sqlite3_step:entry
{
	self->steps++;
	self->statement[self->steps] = arg0;
	self->start[self->steps] = timestamp;
}

pid$target::sqlite3_step:return
/self->steps/
{
	this->text = sql[self->statement[self->steps]];
	@steps[this->text] = count();
	@time[this->text] = sum((timestamp - self->start[self->steps]) / 1000);
	self->statement[self->steps] = 0;
	self->start[self->steps] = 0;
	self->steps--;
}

END
{
	printf("%8s %10s %s\n", "ROWS+1", "TIME(us)", "SQL");
	printa("%@8d %@10d %s\n", @steps, @time);
}
