/* SPDX-License-Identifier: Apache-2.0 */
/* -> of a pointer to int. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_SOU] */
BEGIN
{
	p = (int *)16;
	trace(p->x);
	exit(0);
}
