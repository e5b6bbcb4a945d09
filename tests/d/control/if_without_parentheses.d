/* SPDX-License-Identifier: Apache-2.0 */
/* The condition stands in parentheses. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
BEGIN
{
	if 1 {
		trace(1);
	}
	exit(0);
}
