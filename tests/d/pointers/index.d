/* SPDX-License-Identifier: Apache-2.0 */
/* p[i] is *(p + i). */
BEGIN
{
	this->p = (int *)alloca(16);
	this->p[0] = 10;
	*(this->p + 1) = 11;
	i = 1;
	printf("%d %d %d\n", *this->p, this->p[i], *&this->p[1]);
	exit(0);
}
/* output:
10 11 11

*/
