#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which sizes does a program allocate memory?
 *
 *	clew dtrace -s malloc_sizes.d -c COMMAND
 *	clew dtrace -s malloc_sizes.d -p PID		until Ctrl-C
 *
 * A distribution of bytes asked from malloc(3). For allocators other than libc's, replace the
 * module.
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing malloc of process %d\n", $target);
}

pid$target:libc.so.6:malloc:entry
{
	@sizes = quantize(arg0);
}
