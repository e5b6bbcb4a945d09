/* SPDX-License-Identifier: Apache-2.0 */
/* A struct of this->. */
struct s { int a; int b; };
this struct s v;
BEGIN
{
	this->v.a = 3;
	this->v.b = 4;
}
BEGIN
{
	printf("%d\n", this->v.a + this->v.b);
	exit(0);
}
/* output:
7

*/
