/* SPDX-License-Identifier: Apache-2.0 */
/* A constant cannot be assigned to. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_LVAL] */
BEGIN
{
	3 = 4;
	exit(0);
}
