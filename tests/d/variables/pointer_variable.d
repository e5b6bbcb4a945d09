/* SPDX-License-Identifier: Apache-2.0 */
/* A variable takes the pointer type of its first assignment. */
BEGIN
{
	p = curthread;
	printf("%d\n", p->pid == tid);
	exit(0);
}
/* output:
1

*/
