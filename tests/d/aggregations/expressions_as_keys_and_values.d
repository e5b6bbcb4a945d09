/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values may be any expressions. */
BEGIN
{
	x = 3;
	@a[x * 2, strjoin("k", "ey")] = sum(x + 4);
	printa("%d %s %@d\n", @a);
	exit(0);
}
/* output:
6 key 7

*/
