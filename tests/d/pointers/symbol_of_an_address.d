/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 28: %a is the name of a kernel address. */
BEGIN
{
	printf("%a\n", (uintptr_t)&`vfs_read);
	printf("%a\n", (uintptr_t)&vmlinux`vfs_read);
	exit(0);
}
/* output:
vmlinux`vfs_read
vmlinux`vfs_read

*/
