#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which system calls does a program make, and how often?
 *
 *	clew dtrace -s syscalls.d -c COMMAND	a command and its threads
 *	clew dtrace -s syscalls.d -p PID	a running process, until Ctrl-C
 *
 * The call's name, and the number of calls; the most frequent last.
 */
#pragma D option quiet

syscall:::entry
/pid == $target/
{
	@calls[probefunc] = count();
}
