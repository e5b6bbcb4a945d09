/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
syscall:::return
/errno/
{
	@[execname, probefunc, errno] = count();
}
