/* SPDX-License-Identifier: Apache-2.0 */
/* Two ticks of different rates. */
tick-10ms
{
	fast++;
}
tick-200ms
{
	printf("%d\n", fast > 5 && fast < 40);
	exit(0);
}
/* output:
1

*/
