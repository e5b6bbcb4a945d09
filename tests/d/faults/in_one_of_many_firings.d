/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 43: a fault in one firing leaves the others alone. */
int i;
tick-5ms
{
	i++;
	d = 3 - i;
	x = 12 / d;
	printf("%d ", x);
}
tick-5ms
/i == 5/
{
	printf("\n");
	exit(0);
}
/* output:
6 12 -12 -6 

*/
