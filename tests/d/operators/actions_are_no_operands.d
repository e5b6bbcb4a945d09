/* SPDX-License-Identifier: Apache-2.0 */
/* ?: and the comma take values. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_ACT] line 9: action cannot be used in a conditional context */

BEGIN
{
	x = 1 ? trace(1) : 2;
	exit(0);
}
