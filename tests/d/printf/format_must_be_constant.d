/* SPDX-License-Identifier: Apache-2.0 */
/* The format is a string literal. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRINTF_ARG_FMT] */
BEGIN
{
	s = "%d\n";
	printf(s, 1);
	exit(0);
}
