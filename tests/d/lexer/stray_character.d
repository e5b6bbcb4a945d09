/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 49: a character that starts no token. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
BEGIN
{
	trace(1 ? 2 : 3 # 4);
	exit(0);
}
