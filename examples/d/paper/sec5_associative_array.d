#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section 5.5 of the DTrace paper: an associative array whose keys are an int and a string. Nothing
 * renamed; printed and ended, so that there is something to see.
 *
 *	clew dtrace -q -s sec5_associative_array.d
 */
BEGIN
{
	a[123, "hello"] = 456;
	printf("%d %d\n", a[123, "hello"], a[123, "world"]);
	exit(0);
}
