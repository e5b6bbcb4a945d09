/* SPDX-License-Identifier: Apache-2.0 */
/* A fault of a subroutine ends the clause. */
BEGIN
{
	trace(copyinstr(0));
}
BEGIN
{
	printf("next\n");
	exit(0);
}
ERROR
{
	printf("fault %d\n", arg4 == 1 || arg4 == 7);
}
/* output:
fault 1
next

*/
