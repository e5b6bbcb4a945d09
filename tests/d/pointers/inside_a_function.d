/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 28: an address inside a function has an offset. */
BEGIN
{
	printf("%a\n", (uintptr_t)&`vfs_read + 4);
	exit(0);
}
/* output:
vmlinux`vfs_read+0x4

*/
