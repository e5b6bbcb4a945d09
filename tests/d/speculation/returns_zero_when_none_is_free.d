/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 46 and 47: nspec is 1 by default. */
BEGIN
{
	a = speculation();
	b = speculation();
	printf("%d %d\n", a > 0, b);
	exit(0);
}
/* output:
1 0

*/
