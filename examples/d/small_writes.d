#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who writes a few bytes at a time? Where in the program?
 *
 *	clew dtrace -s small_writes.d -p PID 16		writes of at most 16 bytes, until Ctrl-C
 *	clew dtrace -s small_writes.d -c COMMAND 16
 *
 * For each descriptor and user stack, the number of such writes; the most frequent last.
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing writes of at most %d bytes\n", $1);
}

syscall::write:entry
/pid == $target && arg2 <= $1/
{
	@writes[arg0, ustack(8)] = count();
}
