#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section 6.2 of the DTrace paper: from where in the program come the writes to one descriptor?
 *
 *	clew dtrace -s sec6_write_stacks.d PROGRAM FD	until Ctrl-C
 *
 * For each user stack a distribution of bytes.
 *
 * Renamed: "sshd" and 5 are the script's arguments.
 */
syscall::write:entry
/execname == $$1 && arg0 == $2/
{
	@[ustack()] = quantize(arg2);
}
