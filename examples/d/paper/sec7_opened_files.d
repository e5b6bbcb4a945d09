#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section 7 of the DTrace paper: names of opened files, and how often each.
 *
 *	clew dtrace -s sec7_opened_files.d	until Ctrl-C
 *
 * Renamed: open(2) is openat(2), which is what libc of Linux calls; its path is arg1. A path in a
 * page that nobody has touched yet cannot be fetched at the entry, and is reported; ../opens.d
 * reads it at the return.
 */
syscall::openat:entry
{
	@files[copyinstr(arg1)] = count();
}
