#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions of a Python program are called, and how often?
 *
 *	clew dtrace -s python_calls.d -c COMMAND
 *	clew dtrace -s python_calls.d -p PID		until Ctrl-C
 *
 * FILE FUNCTION	the function; <module> is a file's own code
 * CALLS		how often
 *
 * Counted are returns: Python 3.11 does not tell of each entry. The interpreter must have been
 * built with --with-dtrace, as Debian's is.
 */
#pragma D option quiet

python$target:::function-return
{
	@calls[basename(copyinstr(arg0)), copyinstr(arg1)] = count();
}

END
{
	printf("%-32s %-32s %10s\n", "FILE", "FUNCTION", "CALLS");
	printa("%-32s %-32s %@10d\n", @calls);
}
