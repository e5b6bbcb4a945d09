/* SPDX-License-Identifier: Apache-2.0 */
/* Members by ->. */
struct s { int a; struct s *next; };
BEGIN
{
	this->p = (struct s *)alloca(sizeof (struct s));
	this->q = (struct s *)alloca(sizeof (struct s));
	this->p->a = 1;
	this->p->next = this->q;
	this->q->a = 2;
	this->q->next = NULL;
	printf("%d %d %d\n", this->p->a, this->p->next->a, this->p->next->next == NULL);
	exit(0);
}
/* output:
1 2 1

*/
