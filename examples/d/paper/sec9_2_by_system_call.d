#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section 9 of the DTrace paper, step 2: in which system calls does a program make cross calls?
 *
 *	clew dtrace -s sec9_2_by_system_call.d PROGRAM	until Ctrl-C
 *
 * The call, or <none> for page faults and interrupts, and its cross calls.
 *
 * Renamed: sysinfo:::xcalls as in step 1; "Xsun" is the script's argument.
 */
syscall:::entry
/execname == $$1/
{
	self->sys = probefunc;
}

sdt:::ipi_send_cpu, sdt:::ipi_send_cpumask
/execname == $$1/
{
	@[self->sys != NULL ?
	    self->sys : "<none>"] = count();
}

syscall:::return
/self->sys != NULL/
{
	self->sys = NULL;
}
