#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which opens fail, and what did the kernel hear from the program just before?
 *
 *	clew dtrace -s failed_opens.d			until Ctrl-C, all programs
 *	clew dtrace -s failed_opens.d -c COMMAND	this command only
 *
 * One block for each failing open: the call, its path, and its errno. What opens that succeed have
 * recorded is discarded in the kernel and never printed: this is speculative tracing.
 */
#pragma D option quiet
#pragma D option nspec=1024
#pragma D option specsize=16k

BEGIN
{
	printf("Tracing opens that fail, until Ctrl-C\n");
}

syscall::openat:entry
/pid == $target || $target == 0/
{
	self->spec = speculation();
	self->path = arg1;
	self->start = timestamp;
	self->flags = arg2;
}

syscall::openat:return
/self->spec/
{
	speculate(self->spec);
	printf("%s[%d] opens %s\n", execname, pid, copyinstr(self->path));
	printf("    flags 0x%x, errno %d after %d ns\n", self->flags, errno, timestamp - self->start);
}

syscall::openat:return
/self->spec && errno != 0/
{
	commit(self->spec);
}

syscall::openat:return
/self->spec && errno == 0/
{
	discard(self->spec);
}

syscall::openat:return
/self->spec/
{
	self->spec = 0;
	self->path = 0;
	self->start = 0;
	self->flags = 0;
}
