/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 31. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRINTF_DYN_PROTO] */
BEGIN
{
	printf("%*d\n");
	exit(0);
}
