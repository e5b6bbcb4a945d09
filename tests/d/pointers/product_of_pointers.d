/* SPDX-License-Identifier: Apache-2.0 */
/* Pointers are not multiplied. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_ARITH] */
BEGIN
{
	p = (int *)16;
	trace(p * 2);
	exit(0);
}
