#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions of a program are called, and how often?
 *
 *	clew dtrace -s calls.d -c COMMAND MODULE	MODULE: the program's file name, or a library's
 *	clew dtrace -s calls.d -p PID MODULE		until Ctrl-C
 *
 * The function's name and its calls; the most frequent last.
 */
#pragma D option quiet

BEGIN
{
	printf("Counting calls in process %d\n", $target);
}

pid$target:$1::entry
{
	@calls[probefunc] = count();
}
