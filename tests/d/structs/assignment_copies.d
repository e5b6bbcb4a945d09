/* SPDX-License-Identifier: Apache-2.0 */
/* A struct is assigned as a whole. */
struct s { int a; char b[8]; };
struct s v, w;
BEGIN
{
	v.a = 7;
	v.b[0] = 'k';
	w = v;
	v.a = 8;
	printf("%d %s %d\n", w.a, w.b, v.a);
	exit(0);
}
/* output:
7 k 8

*/
