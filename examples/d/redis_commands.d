#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which commands does a redis server execute, and how long do they take?
 *
 *	clew dtrace -s redis_commands.d -p PID		until Ctrl-C
 *
 * COMMAND	as the client wrote it
 * CALLS	how often
 * AVG(ns)	its average duration; MAX(ns) the longest
 *
 * Fits redis 7, where call(client, flags) runs each command: a client has argv at offset 80, and a
 * robj its text at offset 8.
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing commands of process %d, until Ctrl-C\n", $target);
}

pid$target::call:entry
{
	this->argv = *(uintptr_t *)copyin(arg0 + 80, sizeof(uintptr_t));
	this->command = *(uintptr_t *)copyin(this->argv, sizeof(uintptr_t));
	self->name = copyinstr(*(uintptr_t *)copyin(this->command + 8, sizeof(uintptr_t)));
	self->start = timestamp;
}

pid$target::call:return
/self->start/
{
	this->elapsed = timestamp - self->start;
	@calls[self->name] = count();
	@average[self->name] = avg(this->elapsed);
	@longest[self->name] = max(this->elapsed);
	self->start = 0;
	self->name = 0;
}

END
{
	printf("%-16s %10s %10s %10s\n", "COMMAND", "CALLS", "AVG(ns)", "MAX(ns)");
	printa("%-16s %@10d %@10d %@10d\n", @calls, @average, @longest);
}
