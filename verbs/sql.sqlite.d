/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when: library libsqlite3.so*
 * Statements that were prepared before are not known. SQLite asks itself, too: a statement may need
 * others, to read the schema.
 */
#pragma D option quiet
#pragma D option strsize=200
#pragma D option aggsortrev

pid$target:libsqlite3*:sqlite3_prepare_v2:entry,
pid$target:libsqlite3*:sqlite3_prepare_v3:entry
{
	self->prepares++;
	self->text[self->prepares] = arg1;
	self->result[self->prepares] = probefunc == "sqlite3_prepare_v3" ? arg4 : arg3;
}

/* *ppStmt has the statement when the call returns. */
pid$target:libsqlite3*:sqlite3_prepare_v2:return,
pid$target:libsqlite3*:sqlite3_prepare_v3:return
/self->prepares/
{
	statement[*(uintptr_t *)copyin(self->result[self->prepares], sizeof(uintptr_t))] =
	    copyinstr(self->text[self->prepares]);
	self->result[self->prepares] = 0;
	self->text[self->prepares] = 0;
	self->prepares--;
}

pid$target:libsqlite3*:sqlite3_step:entry
{
	self->steps++;
	self->stepped[self->steps] = arg0;
	self->start[self->steps] = timestamp;
}

pid$target:libsqlite3*:sqlite3_step:return
/self->steps/
{
	this->one = self->stepped[self->steps];
	spent[this->one] += timestamp - self->start[self->steps];
	self->stepped[self->steps] = 0;
	self->start[self->steps] = 0;
	self->steps--;
}

/* 100 is SQLITE_ROW: more steps follow. */
pid$target:libsqlite3*:sqlite3_step:return
/arg1 != 100 && this->one/
{
	@calls[statement[this->one]] = count();
	@nanoseconds[statement[this->one]] = sum(spent[this->one]);
	@longest[statement[this->one]] = max(spent[this->one]);
	spent[this->one] = 0;
}
