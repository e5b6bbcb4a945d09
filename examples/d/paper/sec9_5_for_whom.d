#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section 9 of the DTrace paper, step 5: for which client does a server map memory? It is the one
 * that the server wakes after it mapped, and before it waits for the next request.
 *
 *	clew dtrace -s sec9_5_for_whom.d SERVER		until Ctrl-C
 *
 * The client's program, and how often.
 *
 * Renamed: "Xsun" is the script's argument, and poll(2) is joined by epoll_wait(2).
 */
syscall::poll:entry, syscall::epoll_wait:entry
/execname == $$1/
{
	self->interested = 0;
}

syscall::mmap:entry
/execname == $$1/
{
	self->interested = 1;
}

sched:::wakeup
/self->interested/
{
	@[args[1]->pr_fname] = count();
}
