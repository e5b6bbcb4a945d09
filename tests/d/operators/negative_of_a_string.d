/* SPDX-License-Identifier: Apache-2.0 */
/* Unary minus, product and quotient are arithmetic; the others of integers are integral. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_ARITH] line 8: operator - requires an operand of arithmetic type */
BEGIN
{
	x = -"abc";
	exit(0);
}
