/* SPDX-License-Identifier: Apache-2.0 */
/* A value too large for a bit-field loses its high bits. */
struct s { unsigned int a : 3; int b : 3; };
struct s v;
BEGIN
{
	v.a = 9;
	v.b = 7;
	printf("%d %d\n", v.a, v.b);
	exit(0);
}
/* output:
1 -1

*/
