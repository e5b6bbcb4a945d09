/* SPDX-License-Identifier: Apache-2.0 */
/* And one of which only a part is behind the end. */
/* stderr: invalid address */
BEGIN
{
	p = (char *)alloca(5);
	x = *(int *)(p + 2);
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
