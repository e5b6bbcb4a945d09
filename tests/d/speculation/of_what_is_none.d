/* SPDX-License-Identifier: Apache-2.0 */
/* After speculate() of 0, or of what speculation() never gave, the rest of the clause does not happen. */
BEGIN
{
	speculate(0);
	printf("wrong\n");
	x = 1;
}
BEGIN
{
	speculate(77);
	printf("wrong\n");
	x = 1;
}
BEGIN
{
	printf("%d\n", x);
	exit(0);
}
ERROR
{
	printf("wrong\n");
}
/* output:
0

*/
