/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 33: three functions over the same keys. */
BEGIN
{
	@c[pid == $pid] = count();
	@s[pid == $pid] = sum(7);
	@m[pid == $pid] = max(-3);
	printa("%d %@d %@d %@d\n", @c, @s, @m);
	exit(0);
}
/* output:
1 1 7 -3

*/
