/* SPDX-License-Identifier: Apache-2.0 */
/* An array of structs in a struct. */
struct point { int x; int y; };
struct line { struct point p[2]; };
struct line l;
BEGIN
{
	l.p[0].x = 1;
	l.p[1].y = 4;
	i = 1;
	l.p[i].x = 3;
	printf("%d %d %d %d\n", l.p[0].x, l.p[0].y, l.p[i].x, l.p[1].y);
	exit(0);
}
/* output:
1 0 3 4

*/
