/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in structs, with constant and computed indices. */
struct s { int n; int a[4]; };
struct s v;
BEGIN
{
	i = 2;
	v.a[0] = 10;
	v.a[i] = 12;
	v.a[i + 1] = 13;
	printf("%d %d %d %d %d\n", v.a[0], v.a[1], v.a[2], v.a[3], sizeof (v.a));
	exit(0);
}
/* output:
10 0 12 13 16

*/
