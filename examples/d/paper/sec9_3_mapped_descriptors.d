#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section 9 of the DTrace paper, step 3: which descriptors does a program map?
 *
 *	clew dtrace -q -s sec9_3_mapped_descriptors.d PROGRAM	until Ctrl-C
 *
 * PID, FD (-1 is memory without a file) and COUNT of mmap(2) calls.
 *
 * Renamed: "Xsun" is the script's argument. arg4 is cut to an int: the upper half of its register
 * means nothing to the kernel.
 */
syscall::mmap:entry
/execname == $$1/
{
	@[pid, (int)arg4] = count();
}

END
{
	printf("%9s %13s %16s\n",
	    "PID", "FD", "COUNT");
	printa("%9d %13d %16@d\n", @);
}
