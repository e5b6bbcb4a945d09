#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section 9 of the DTrace paper, step 4: from where does a program call mmap(2)?
 *
 *	clew dtrace -s sec9_4_mapping_stacks.d PROGRAM	until Ctrl-C
 *
 * User stacks, and how often.
 *
 * Renamed: "Xsun" is the script's argument.
 */
syscall::mmap:entry
/execname == $$1/
{
	@[ustack()] = count();
}
