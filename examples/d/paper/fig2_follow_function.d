#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figure 2 of the DTrace paper: all activity, of the user and of the kernel, from a user function.
 *
 *	clew dtrace -s fig2_follow_function.d PID FUNCTION	until Ctrl-C
 *
 * One line for each entry and return, indented by depth; U in the program, K in the kernel.
 *
 * Renamed: fbt::: is syscall:::, so that it runs on kernels that allow no probes at their
 * functions; where they do, write fbt::: back and see the kernel's inside, too. pid$1:::entry is the
 * program's own functions, and curlwpsinfo->pr_syscall is asked of the probe.
 */
#pragma D option flowindent

pid$1::$2:entry
{
	self->trace = 1;
}

pid$1:a.out::entry, pid$1:a.out::return, syscall:::
/self->trace/
{
	printf("%s", probeprov == "syscall" ?
	    "K" : "U");
}

pid$1::$2:return
/self->trace/
{
	self->trace = 0;
}
