/* SPDX-License-Identifier: Apache-2.0 */
/* A union through a pointer. */
union u { uint32_t word; uint8_t byte[4]; };
BEGIN
{
	this->u = (union u *)alloca(sizeof (union u));
	this->u->word = 0x01020304;
	i = 3;
	printf("%d%d%d%d\n", this->u->byte[0], this->u->byte[1], this->u->byte[2],
	    this->u->byte[i]);
	exit(0);
}
/* output:
4321

*/
