/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 1: clauses of one probe in program order. */
BEGIN
{
	printf("1\n");
}
END
{
	printf("3\n");
}
BEGIN
{
	printf("2\n");
	exit(0);
}
END
{
	printf("4\n");
}
/* output:
1
2
3
4

*/
