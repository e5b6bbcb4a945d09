/* SPDX-License-Identifier: Apache-2.0 */
/* A struct of self->. */
struct s { int a; int b; };
self struct s v;
BEGIN
{
	self->v.a = 1;
	self->v.b = 2;
}
BEGIN
{
	printf("%d %d\n", self->v.a, self->v.b);
	exit(0);
}
/* output:
1 2

*/
