/* SPDX-License-Identifier: Apache-2.0 */
/* & of an element and of a member. */
struct s { int a; int b; };
BEGIN
{
	this->p = (struct s *)alloca(16);
	printf("%d %d\n", (long)&this->p->b - (long)this->p, (long)&this->p[1] - (long)this->p);
	exit(0);
}
/* output:
4 8

*/
