/* SPDX-License-Identifier: Apache-2.0 */
/* -> of an integer. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_PTR] */
BEGIN
{
	x = 5;
	trace(x->y);
	exit(0);
}
