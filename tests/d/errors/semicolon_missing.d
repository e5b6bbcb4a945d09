/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 49. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
BEGIN
{
	x = 1
	y = 2;
	exit(0);
}
