/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 31. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRINTF_DYN_TYPE] */
BEGIN
{
	printf("%*d\n", "5", 6);
	exit(0);
}
