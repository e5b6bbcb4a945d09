/* SPDX-License-Identifier: Apache-2.0 */
/* What overflows an int on the way is kept; only the result is cut. */
int i;
BEGIN
{
	i = 1000000000;
	printf("%d %d %d\n", i - (4 * i) * i / i * i, (i + i + i) / 3, (i * 8) / 8);
	printf("%d %d\n", i + i + i < 0, (int)(i * 4));
	exit(0);
}
/* output:
-1643460096 1000000000 1000000000
0 -294967296

*/
