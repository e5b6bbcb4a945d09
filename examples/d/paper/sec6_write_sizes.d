#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section 6.2 of the DTrace paper: the sizes of a program's writes, by descriptor.
 *
 *	clew dtrace -s sec6_write_sizes.d PROGRAM	until Ctrl-C
 *
 * For each descriptor a distribution of bytes.
 *
 * Renamed: "sshd" is the script's argument.
 */
syscall::write:entry
/execname == $$1/
{
	@[arg0] = quantize(arg2);
}
