/* SPDX-License-Identifier: Apache-2.0 */
/* A hundred elements. */
int i;
tick-1ms
/i < 100/
{
	a[i] = i * i;
	i++;
}
tick-1ms
/i == 100/
{
	printf("%d %d %d %d\n", a[0], a[1], a[50], a[99]);
	exit(0);
}
/* output:
0 1 2500 9801

*/
