/* SPDX-License-Identifier: Apache-2.0 */
/* What one probe prints comes out in order. */
int i;
tick-1ms
/i < 30/
{
	printf("%d ", i++);
}
tick-1ms
/i == 30/
{
	printf("\n");
	exit(0);
}
/* output:
0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 

*/
