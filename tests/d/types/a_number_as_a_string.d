/* SPDX-License-Identifier: Apache-2.0 */
/* A cast to string takes an address as stringof() does. */
BEGIN
{
	this->p = (char *)alloca(8);
	this->p[0] = 'h';
	this->p[1] = 'i';
	this->n = (uintptr_t)this->p;
	printf("%s %s\n", (string)this->p, (string)this->n);
	exit(0);
}
/* output:
hi hi

*/
