/* SPDX-License-Identifier: Apache-2.0 */
/* bcopy() of one byte more than there is. */
/* stderr: invalid address */
BEGIN
{
	p = (char *)alloca(4);
	q = (char *)alloca(8);
	bcopy(p, q, 4);
	bcopy(p, q, 5);
	printf("wrong\n");
}
ERROR
{
	printf("fault %d\n", arg4);
}
BEGIN
{
	exit(0);
}
/* output:
fault 1

*/
