#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section 9 of the DTrace paper, step 1: which programs make one CPU interrupt another?
 *
 *	clew dtrace -s sec9_1_cross_calls.d	until Ctrl-C
 *
 * The program and its cross calls; the most last.
 *
 * Renamed: sysinfo:::xcalls are the kernel's tracepoints of interrupts between CPUs.
 */
sdt:::ipi_send_cpu, sdt:::ipi_send_cpumask
{
	@[execname] = count();
}
