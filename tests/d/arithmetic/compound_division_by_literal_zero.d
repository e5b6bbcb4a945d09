/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 15: so is a compound assignment. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DIV_ZERO] */
BEGIN
{
	x = 3;
	x /= 0;
	exit(0);
}
