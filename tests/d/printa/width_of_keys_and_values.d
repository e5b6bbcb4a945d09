/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 28: widths and alignment of keys and values. */
BEGIN
{
	@a["abc", 5] = sum(17);
	printa("[%-6s][%4d][%@-5d][%@05d]\n", @a);
	exit(0);
}
/* output:
[abc   ][   5][17   ][00017]

*/
