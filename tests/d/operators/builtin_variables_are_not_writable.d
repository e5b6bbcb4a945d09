/* SPDX-License-Identifier: Apache-2.0 */
/* pid cannot be assigned to. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_WRITE] */
BEGIN
{
	pid = 4;
	exit(0);
}
