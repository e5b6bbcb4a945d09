#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which functions does a program spend its CPU time?
 *
 *	clew dtrace -s hot_functions.d -p PID		until Ctrl-C
 *
 * Functions as module`function, with the samples (997 each second and CPU) that found the program
 * in them; the hottest last.
 */
#pragma D option quiet

BEGIN
{
	printf("Sampling process %d at 997 Hz, until Ctrl-C\n", $target);
}

profile-997
/pid == $target && arg1/
{
	@functions[ufunc(arg1)] = count();
}
