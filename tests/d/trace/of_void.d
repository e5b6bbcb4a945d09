/* SPDX-License-Identifier: Apache-2.0 */
/* There is no value to record. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_TRACE_VOID] */
BEGIN
{
	trace((void)0);
	exit(0);
}
