/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 28: %Y of a key. */
BEGIN
{
	@a[86400000000000ll] = count();
	printa("%Y %@d\n", @a);
	exit(0);
}
/* output:
1970 Jan  2 00:00:00 1

*/
