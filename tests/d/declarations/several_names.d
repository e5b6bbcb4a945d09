/* SPDX-License-Identifier: Apache-2.0 */
/* Several names in one declaration. */
int a, *b, c[int];
BEGIN
{
	a = 1;
	b = (int *)4;
	c[1] = 2;
	printf("%d %d %d\n", a, (long)(b + 1), c[1]);
	exit(0);
}
/* output:
1 8 2

*/
