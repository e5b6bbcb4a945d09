/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 18: elements may be structs; storing 0 deletes the element. */
struct s { int a; int b; };
struct s v, a[int];
BEGIN
{
	v.a = 3;
	v.b = 4;
	a[1] = v;
	printf("%d ", a[1].a + a[1].b);
	a[1] = 0;
	printf("%d\n", a[1].a + a[1].b);
	exit(0);
}
/* output:
7 0

*/
