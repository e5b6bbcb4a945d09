/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 49. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
/* stderr: syntax error near ")" */
BEGIN
{
	trace(1 + );
	exit(0);
}
