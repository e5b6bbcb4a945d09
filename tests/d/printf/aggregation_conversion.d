/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 31: %@ belongs to printa. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRINTF_AGG_CONV] */
BEGIN
{
	printf("%@d\n", 1);
	exit(0);
}
