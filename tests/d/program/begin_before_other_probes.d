/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 2: BEGIN fires before any other probe. */
int x;
tick-1ms
/!x/
{
	printf("wrong\n");
}
tick-1ms
{
	printf("%d\n", x);
	exit(0);
}
BEGIN
{
	x = 1;
}
/* output:
1

*/
