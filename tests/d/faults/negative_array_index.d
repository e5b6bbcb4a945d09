/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 17: a negative index is out of bounds, too. */
struct s { int a[4]; };
struct s v;
BEGIN
{
	i = -1;
	v.a[i] = 1;
}
BEGIN
{
	exit(0);
}
ERROR
{
	printf("fault\n");
}
/* output:
fault

*/
