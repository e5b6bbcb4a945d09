/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 1: a predicate is evaluated just before its clause. */
BEGIN
{
	x = 1;
}
BEGIN
/x == 1/
{
	printf("set\n");
	x = 2;
}
BEGIN
/x == 1/
{
	printf("wrong\n");
}
BEGIN
/x == 2/
{
	printf("changed\n");
	exit(0);
}
/* output:
set
changed

*/
