/* SPDX-License-Identifier: Apache-2.0 */
/* An array in an expression is the address of its first element. */
struct s { int a[4]; };
BEGIN
{
	this->p = (struct s *)alloca(sizeof (struct s));
	this->p->a[2] = 7;
	this->q = this->p->a + 2;
	printf("%d %d\n", *this->q, (uint64_t)this->p->a == (uint64_t)this->p);
	exit(0);
}
/* output:
7 1

*/
