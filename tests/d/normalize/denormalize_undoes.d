/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 41: denormalize(). */
BEGIN
{
	@a = sum(120);
	normalize(@a, 10);
	printa("%@d ", @a);
	denormalize(@a);
	printa("%@d\n", @a);
	exit(0);
}
/* output:
12 120

*/
