/* SPDX-License-Identifier: Apache-2.0 */
/* NULL compares with each pointer. */
BEGIN
{
	p = (int *)0;
	printf("%d %d\n", p == NULL, NULL == p);
	exit(0);
}
/* output:
1 1

*/
