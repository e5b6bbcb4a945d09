/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 46: with nspec=3 there are three different ones. */
/* flags: -q -xnspec=3 */
BEGIN
{
	a = speculation();
	b = speculation();
	c = speculation();
	d = speculation();
	printf("%d %d\n", a && b && c && a != b && b != c && a != c, d);
	exit(0);
}
/* output:
1 0

*/
