/* SPDX-License-Identifier: Apache-2.0 */
/* stack() has no value. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_TRACE_DYN] */
BEGIN
{
	trace(stack());
	exit(0);
}
