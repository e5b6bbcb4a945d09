/* SPDX-License-Identifier: Apache-2.0 */
/* tick-N fires once for each period, on one CPU. */
tick-20ms
{
	n++;
}
tick-20ms
/n == 5/
{
	printf("%d\n", n);
	exit(0);
}
/* output:
5

*/
