/* SPDX-License-Identifier: Apache-2.0 */
/* An integer and a string have no common type. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_INCOMPAT] */
BEGIN
{
	x = 1;
	trace(x ? "a" : 3);
	exit(0);
}
