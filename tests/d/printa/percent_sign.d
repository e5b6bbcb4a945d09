/* SPDX-License-Identifier: Apache-2.0 */
/* %% in a format of printa(). */
BEGIN
{
	@a = sum(50);
	printa("%@d%%\n", @a);
	exit(0);
}
/* output:
50%

*/
