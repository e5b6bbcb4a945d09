/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 44: ERROR clauses may have predicates. */
BEGIN
{
	x = *(int *)NULL;
}
BEGIN
{
	x = 0;
	y = 1 / x;
}
BEGIN
{
	exit(0);
}
ERROR
/arg4 == 4/
{
	printf("division\n");
}
ERROR
/arg4 == 1/
{
	printf("address\n");
}
/* output:
address
division

*/
