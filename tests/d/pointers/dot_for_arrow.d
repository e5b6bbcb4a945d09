/* SPDX-License-Identifier: Apache-2.0 */
/* . of a pointer. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_SOU] */
BEGIN
{
	trace(curthread.pid);
	exit(0);
}
