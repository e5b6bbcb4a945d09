/* SPDX-License-Identifier: Apache-2.0 */
/* A string key under %d. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRINTF_ARG_TYPE] */
BEGIN
{
	@a["x"] = count();
	printa("%d %@d\n", @a);
	exit(0);
}
