/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
proc:::signal-send
{
	@[execname, stringof(args[1]->pr_fname), args[2]] = count();
}
