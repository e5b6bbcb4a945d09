#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which programs are on the CPUs?
 *
 *	clew dtrace -s hot_programs.d		until Ctrl-C
 *
 * PROGRAM PID	the process
 * SAMPLES	out of 997 each second and CPU; the idle CPU is swapper, pid 0
 */
#pragma D option quiet

BEGIN
{
	printf("Sampling at 997 Hz, until Ctrl-C\n");
}

profile-997
{
	@samples[execname, pid] = count();
}

END
{
	printf("%-16s %7s %10s\n", "PROGRAM", "PID", "SAMPLES");
	printa("%-16s %7d %@10d\n", @samples);
}
