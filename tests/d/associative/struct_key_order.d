/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 20: keys of several types in one tuple. */
BEGIN
{
	a[(char)1, "b", 3ll] = 5;
	printf("%d %d %d\n", a[1, "b", 3], a[1, "b", 4], a[2, "b", 3]);
	exit(0);
}
/* output:
5 0 0

*/
