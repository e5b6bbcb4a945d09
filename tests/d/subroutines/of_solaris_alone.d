/* SPDX-License-Identifier: Apache-2.0 */
/* Functions without a meaning on Linux are none. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_FUNC_UNDEF] */
BEGIN
{
	trace(msgsize(NULL));
	exit(0);
}
