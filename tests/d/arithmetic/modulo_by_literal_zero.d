/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 15: so is a modulo. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DIV_ZERO] */
/* stderr: expression contains division by zero */
BEGIN
{
	x = 3;
	y = x % (1 - 1);
	exit(0);
}
