/* SPDX-License-Identifier: Apache-2.0 */
/* An index is an integer. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_INCOMPAT] */
BEGIN
{
	p = (int *)16;
	trace(p["x"]);
	exit(0);
}
