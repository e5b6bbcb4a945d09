#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section 6.2 of the DTrace paper, the first aggregation: write(2) calls by program. Nothing
 * renamed.
 *
 *	clew dtrace -s sec6_writes_by_program.d		until Ctrl-C
 *
 * The program and its calls; the busiest last.
 */
syscall::write:entry
{
	@counts[execname] = count();
}
