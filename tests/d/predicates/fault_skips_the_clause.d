/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 43: a fault in a predicate skips its clause only. */
BEGIN
/ *(int *)NULL == 3/
{
	printf("wrong\n");
}
BEGIN
{
	printf("next\n");
	exit(0);
}
ERROR
{
	printf("fault\n");
}
/* output:
fault
next

*/
