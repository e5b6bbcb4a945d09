/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 9: *, ? and []. */
BEG*
{
	printf("1\n");
}
B?GIN
{
	printf("2\n");
}
[BC]EGIN
{
	printf("3\n");
}
dtr*:::B[A-F]GIN
{
	printf("4\n");
	exit(0);
}
/* output:
1
2
3
4

*/
