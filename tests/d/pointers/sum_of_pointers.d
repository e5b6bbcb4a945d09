/* SPDX-License-Identifier: Apache-2.0 */
/* Two pointers are not added. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_INCOMPAT] */
BEGIN
{
	p = (int *)16;
	trace(p + p);
	exit(0);
}
