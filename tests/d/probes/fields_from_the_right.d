/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 9: missing fields are on the left. */
dtrace:::BEGIN
{
	printf("1\n");
}
::BEGIN
{
	printf("2\n");
}
:::BEGIN
{
	printf("3\n");
	exit(0);
}
/* output:
1
2
3

*/
