/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 41: of an average. */
BEGIN
{
	@a = avg(100);
	@a = avg(200);
	normalize(@a, 50);
	printa("%@d\n", @a);
	exit(0);
}
/* output:
3

*/
