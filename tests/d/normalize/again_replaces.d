/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 41: a second normalize() replaces the first. */
BEGIN
{
	@a = sum(120);
	normalize(@a, 10);
	printa("%@d ", @a);
	normalize(@a, 4);
	printa("%@d\n", @a);
	exit(0);
}
/* output:
12 30

*/
