/* SPDX-License-Identifier: Apache-2.0 */
/* A store of which a part is before the start. */
/* stderr: invalid address */
BEGIN
{
	p = (char *)alloca(8);
	*(int *)(p - 2) = 1;
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
