#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figure 4 of the DTrace paper: what the kernel did in ioctl(2) calls that failed, and only in
 * those.
 *
 *	clew dtrace -s fig4_failing_ioctl.d	until Ctrl-C
 *
 * One line for each event in the kernel: the program, and errno as it was then.
 *
 * Renamed: fbt::: is syscall::ioctl: and sdt:::, the kernel's tracepoints; kernels that allow
 * probes at their functions can have fbt::: back. Added: a buffer for each
 * of several calls at once; with one, another program's failing call keeps
 * it from the next.
 */
#pragma D option flowindent
#pragma D option nspec=64

syscall::ioctl:entry
/pid != $pid/
{
	self->spec = speculation();
}

syscall::ioctl:, sdt:::
/self->spec/
{
	speculate(self->spec);
	printf("%s: %d", execname, errno);
}

syscall::ioctl:return
/self->spec && errno != 0/
{
	commit(self->spec);
	self->spec = 0;
}

syscall::ioctl:return
/self->spec && errno == 0/
{
	discard(self->spec);
	self->spec = 0;
}
