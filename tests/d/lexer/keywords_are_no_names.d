/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 49: reserved words of C cannot be variables. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
BEGIN
{
	while = 1;
	exit(0);
}
