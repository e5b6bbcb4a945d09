/* SPDX-License-Identifier: Apache-2.0 */
/* Bit-fields keep their bits apart. */
struct s { int a : 3; int b : 4; unsigned int c : 5; };
struct s v;
BEGIN
{
	v.a = 3;
	v.b = -2;
	v.c = 31;
	printf("%d %d %d %d\n", v.a, v.b, v.c, sizeof (v));
	v.b = 5;
	printf("%d %d %d\n", v.a, v.b, v.c);
	exit(0);
}
/* output:
3 -2 31 4
3 5 31

*/
