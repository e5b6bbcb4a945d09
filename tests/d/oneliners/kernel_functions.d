/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
fbt::vfs_*:entry
{
	@[probefunc] = count();
}
tick-5s
{
	printa(@);
	clear(@);
}
