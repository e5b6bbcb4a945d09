/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel type by backquote. */
BEGIN
{
	printf("%d %d\n", sizeof (vmlinux`pid_t), sizeof (struct vmlinux`list_head));
	exit(0);
}
/* output:
4 16

*/
