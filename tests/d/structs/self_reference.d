/* SPDX-License-Identifier: Apache-2.0 */
/* A struct with a pointer to itself. */
struct chain_of_numbers { int number; struct chain_of_numbers *next; };
BEGIN
{
	this->p = (struct chain_of_numbers *)alloca(sizeof (struct chain_of_numbers));
	this->p->number = 3;
	this->p->next = this->p;
	printf("%d\n", this->p->next->next->next->number);
	exit(0);
}
/* output:
3

*/
