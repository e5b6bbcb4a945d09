/* SPDX-License-Identifier: Apache-2.0 */
/* What one clause was given is invalid in the next. */
/* stderr: invalid address */
char *kept;
BEGIN
{
	kept = (char *)alloca(8);
	kept[7] = 1;
}
BEGIN
{
	x = *kept;
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
