/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a kernel struct have offsets. */
BEGIN
{
	printf("%d %d\n", offsetof(struct vmlinux`list_head, next),
	    offsetof(struct vmlinux`list_head, prev));
	exit(0);
}
/* output:
0 8

*/
