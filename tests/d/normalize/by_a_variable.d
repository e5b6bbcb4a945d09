/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 41: the divisor may be computed. */
BEGIN
{
	@a = sum(100);
	x = 3;
	normalize(@a, x + 1);
	printa("%@d\n", @a);
	exit(0);
}
/* output:
25

*/
