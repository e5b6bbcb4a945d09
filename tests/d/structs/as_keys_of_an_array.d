/* SPDX-License-Identifier: Apache-2.0 */
/* Structs are keys by what is in them. */
struct key { int a; char b; };
struct key k;
union either { int i; char c[4]; };
union either u;
BEGIN
{
	k.a = 1;
	k.b = 2;
	x[k] = 12;
	k.b = 3;
	x[k] = 13;
	k.b = 2;
	u.i = 0x41424344;
	y[u, "s"] = 5;
	u.c[0] = 'E';
	y[u, "s"] = 6;
	printf("%d %d ", x[k], y[u, "s"]);
	u.i = 0x41424344;
	k.a = 9;
	printf("%d %d\n", x[k], y[u, "s"]);
	exit(0);
}
/* output:
12 6 0 5

*/
