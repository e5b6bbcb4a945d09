#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is the kernel busy with?
 *
 *	clew dtrace -s hot_kernel_stacks.d	until Ctrl-C
 *
 * The ten hottest kernel stacks with the program that was running, the hottest last. arg0 is the
 * kernel's program counter: it is 0 when the sample found the CPU in user mode.
 */
#pragma D option quiet

BEGIN
{
	printf("Sampling the kernel at 997 Hz, until Ctrl-C\n");
}

profile-997
/arg0 && pid/
{
	@stacks[execname, stack(16)] = count();
}

END
{
	trunc(@stacks, 10);
}
