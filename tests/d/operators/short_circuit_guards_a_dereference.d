/* SPDX-License-Identifier: Apache-2.0 */
/* && protects what stands behind it from a fault. */
BEGIN
{
	p = (int *)NULL;
	printf("%d\n", p != NULL && *p == 3);
	exit(0);
}
ERROR
{
	printf("fault\n");
}
/* output:
0

*/
