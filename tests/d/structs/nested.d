/* SPDX-License-Identifier: Apache-2.0 */
/* Structs in structs. */
struct inner { int a; int b; };
struct outer { char c; struct inner i; struct inner j; };
struct outer o;
BEGIN
{
	o.i.a = 1;
	o.i.b = 2;
	o.j.a = 3;
	o.j.b = 4;
	printf("%d%d%d%d %d\n", o.i.a, o.i.b, o.j.a, o.j.b, sizeof (o));
	exit(0);
}
/* output:
1234 20

*/
