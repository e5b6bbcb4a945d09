/* SPDX-License-Identifier: Apache-2.0 */
/* % takes no strings. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_INT] */
BEGIN
{
	x = "abc";
	trace(x % 3);
	exit(0);
}
