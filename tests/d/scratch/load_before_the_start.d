/* SPDX-License-Identifier: Apache-2.0 */
/* So is one before its start. */
/* stderr: invalid address */
BEGIN
{
	p = (char *)alloca(5);
	x = *(p - 1);
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
