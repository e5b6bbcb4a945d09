/* SPDX-License-Identifier: Apache-2.0 */
/* Pointers into an array stay valid, across clauses too. */
int a[5];
int *p;
int *q;
BEGIN
{
	a[0] = 1;
	a[1] = 2;
	a[2] = 3;
	p = &a[0];
	q = &a[2];
}
BEGIN
{
	printf("%d %d %d %d\n", p[2], *p, *(p + 1), q - p);
	*p = 9;
	p[1] = 8;
	printf("%d %d\n", a[0], a[1]);
	exit(0);
}
/* output:
3 1 2 2
9 8

*/
