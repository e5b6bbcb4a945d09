/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 49: a syntax error names the token. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
/* stderr: syntax error near "END" */
BEGIN
{
	trace(1)
END
{
	exit(0);
}
