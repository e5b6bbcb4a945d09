/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 18: storing 0 deletes, the element reads as 0, and can be stored again. */
BEGIN
{
	a[5] = 7;
	a[5] = 0;
	printf("%d ", a[5]);
	a[5] = 8;
	printf("%d\n", a[5]);
	exit(0);
}
/* output:
0 8

*/
