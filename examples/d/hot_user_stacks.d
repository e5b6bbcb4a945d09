#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where does a program spend its CPU time in its own code?
 *
 *	clew dtrace -s hot_user_stacks.d -p PID		until Ctrl-C
 *
 * User stacks, innermost function first, with how many of the samples (997 each second and CPU) saw
 * them; the hottest last. Functions need no frame pointers for it.
 */
#pragma D option quiet

BEGIN
{
	printf("Sampling process %d at 997 Hz, until Ctrl-C\n", $target);
}

profile-997
/pid == $target && arg1/
{
	@stacks[ustack(16)] = count();
}

END
{
	trunc(@stacks, 10);
}
