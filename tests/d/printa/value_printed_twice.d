/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 32: every %@ prints the same value. */
BEGIN
{
	@a[1] = sum(17);
	printa("%@d %@x %@5d %d\n", @a);
	exit(0);
}
/* output:
17 11    17 1

*/
