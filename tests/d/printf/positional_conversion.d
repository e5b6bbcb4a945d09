/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 30: there are no positional conversions. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
BEGIN
{
	printf("%1$d\n", 1);
	exit(0);
}
