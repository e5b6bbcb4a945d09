/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 15: a division by the constant zero is found by the compiler. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DIV_ZERO] */
/* stderr: expression contains division by zero */
BEGIN
{
	x = 3;
	y = x / 0;
	exit(0);
}
