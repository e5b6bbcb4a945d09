/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 41: only the printed value is divided. */
BEGIN
{
	@a = sum(40);
	normalize(@a, 10);
	@a = sum(60);
	printa("%@d\n", @a);
	exit(0);
}
/* output:
10

*/
