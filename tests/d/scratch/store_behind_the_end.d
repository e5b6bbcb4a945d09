/* SPDX-License-Identifier: Apache-2.0 */
/* A store behind the end of what alloca() gave. */
/* stderr: invalid address */
BEGIN
{
	p = (char *)alloca(8);
	p[7] = 1;
	p[8] = 1;
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
