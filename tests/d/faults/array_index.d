/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 17: an index out of bounds that is known at run time only. */
/* stderr: (dtrace:::BEGIN): index out of bounds (4) at BPF pc */
struct s { int a[4]; };
struct s v;
BEGIN
{
	i = 4;
	v.a[0] = 1;
	trace(v.a[i]);
}
BEGIN
{
	printf("next\n");
	exit(0);
}
ERROR
{
	printf("%d\n", arg4 == 1 || arg4 == 11);
}
/* output:
1
next

*/
