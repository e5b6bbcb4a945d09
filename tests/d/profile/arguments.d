/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 9: one of arg0 and arg1 is a pc, the other 0. */
profile-200hz
/(arg0 != 0) == (arg1 != 0)/
{
	bad++;
}
tick-200ms
{
	printf("%d\n", bad);
	exit(0);
}
/* output:
0

*/
