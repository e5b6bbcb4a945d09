/* SPDX-License-Identifier: Apache-2.0 */
/* alloca() gives exactly that many bytes: a load of the next one is a fault. */
/* stderr: invalid address */
BEGIN
{
	p = (char *)alloca(5);
	n = p[4];
	n = 7;
	x = p[5];
	printf("wrong\n");
}
ERROR
{
	printf("fault %d\n", arg4);
}
BEGIN
{
	printf("%d\n", n);
	exit(0);
}
/* output:
fault 1
7

*/
