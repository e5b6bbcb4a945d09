/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a struct variable. */
struct point { int x; int y; };
struct point p;
BEGIN
{
	p.x = 3;
	p.y = 4;
	printf("%d %d\n", p.x * p.x + p.y * p.y, sizeof (p));
	exit(0);
}
/* output:
25 8

*/
