/* SPDX-License-Identifier: Apache-2.0 */
/* bcopy() copies between parts of the scratch memory. */
BEGIN
{
	this->p = (char *)alloca(4);
	this->q = (char *)alloca(4);
	this->p[0] = 'a';
	this->p[1] = 'b';
	bcopy(this->p, this->q, 4);
	this->p[0] = 'c';
	printf("%s %s\n", stringof(this->p), stringof(this->q));
	exit(0);
}
/* output:
cb ab

*/
