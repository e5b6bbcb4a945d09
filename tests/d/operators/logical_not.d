/* SPDX-License-Identifier: Apache-2.0 */
/* ! gives an int. */
BEGIN
{
	a = 5ll;
	z = 0;
	printf("%d %d %d %d\n", !a, !z, !!a, sizeof (!a));
	exit(0);
}
/* output:
0 1 1 4

*/
