/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 31. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRINTF_ARG_EXTRA] */
BEGIN
{
	printf("%d\n", 1, 2);
	exit(0);
}
