/* SPDX-License-Identifier: Apache-2.0 */
/* Pointers to pointers. */
BEGIN
{
	this->p = (int *)alloca(4);
	this->q = (int **)alloca(8);
	*this->q = this->p;
	**this->q = 9;
	printf("%d\n", *this->p);
	exit(0);
}
/* output:
9

*/
