/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
syscall::open*:entry
{
	printf("%s %s", execname, copyinstr(arg1));
}
