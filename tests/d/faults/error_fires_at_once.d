/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 43: ERROR runs before the next clause of the probe. */
BEGIN
{
	printf("first\n");
}
BEGIN
{
	x = *(char *)NULL;
	printf("wrong\n");
}
BEGIN
{
	printf("third\n");
	exit(0);
}
ERROR
{
	printf("error\n");
}
/* output:
first
error
third

*/
