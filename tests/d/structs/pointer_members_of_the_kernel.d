/* SPDX-License-Identifier: Apache-2.0 */
/* Members of kernel structs through several pointers. */
BEGIN
{
	printf("%d %d\n", curthread->real_parent->tgid == ppid,
	    curthread->group_leader->pid == pid);
	exit(0);
}
/* output:
1 1

*/
