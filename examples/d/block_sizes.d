#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which sizes do programs read from and write to disks?
 *
 *	clew dtrace -s block_sizes.d		until Ctrl-C
 *
 * For each disk, program and direction (R or W), a distribution of bytes. Pages that were written
 * earlier go out in the name of the kernel's threads (kworker), not of the program.
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing sizes of disk requests, until Ctrl-C\n");
}

io:::start
{
	@sizes[args[1]->dev_statname, execname, args[0]->b_flags & B_READ ? "R" : "W"] =
	    quantize(args[0]->b_bcount);
}
