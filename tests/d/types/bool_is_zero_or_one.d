/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is not 0 becomes 1. */
_Bool b;
struct s { _Bool x; int y; };
struct s g;
BEGIN
{
	b = 5;
	g.x = 256;
	printf("%d %d %d\n", b, g.x, (_Bool)0x100);
	b += 255;
	g.x++;
	printf("%d %d\n", b, g.x);
	exit(0);
}
/* output:
1 1 1
1 1

*/
