/* SPDX-License-Identifier: Apache-2.0 */
/* The value of an expression cannot be incremented. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_LVAL] */
BEGIN
{
	x = 1;
	(x + 1)++;
	exit(0);
}
