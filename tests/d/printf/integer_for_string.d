/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 31. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRINTF_ARG_TYPE] */
BEGIN
{
	printf("%s\n", 1);
	exit(0);
}
