/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
syscall::write:entry
{
	@[execname, fds[arg0].fi_pathname] = sum(arg2);
}
tick-10s
{
	trunc(@, 10);
	printa("%-20s %-40s %@d\n", @);
	trunc(@);
}
