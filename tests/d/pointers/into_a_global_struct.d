/* SPDX-License-Identifier: Apache-2.0 */
/* Members of variables have addresses. */
struct s { int x; int y; };
struct s g;
int *p;
BEGIN
{
	g.y = 3;
	p = &g.y;
	*p += 2;
	printf("%d %d\n", *p, g.y);
	exit(0);
}
/* output:
5 5

*/
