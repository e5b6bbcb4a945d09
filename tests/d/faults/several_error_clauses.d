/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 43: all ERROR clauses run. */
BEGIN
{
	x = *(int *)NULL;
}
BEGIN
{
	exit(0);
}
ERROR
{
	printf("one\n");
}
ERROR
{
	printf("two\n");
}
/* output:
one
two

*/
