/* SPDX-License-Identifier: Apache-2.0 */
/* D has no loops. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
BEGIN
{
	while (1) {
		x++;
	}
	exit(0);
}
