/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 31. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRINTF_ARG_TYPE] */
BEGIN
{
	printf("%c\n", "x");
	exit(0);
}
