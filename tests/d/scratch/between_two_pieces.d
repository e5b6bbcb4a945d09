/* SPDX-License-Identifier: Apache-2.0 */
/* Behind one piece is not the next one. */
/* stderr: invalid address */
BEGIN
{
	p = (char *)alloca(16);
	q = (char *)alloca(16);
	p[15] = q[0] + 1;
	x = p[16];
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
