/* SPDX-License-Identifier: Apache-2.0 */
/* Pointers are compared as unsigned. */
BEGIN
{
	p = (char *)0xffffffff00000000;
	q = (char *)1;
	printf("%d %d %d %d\n", p > q, p == q, p != NULL, !q);
	exit(0);
}
/* output:
1 0 1 0

*/
