/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 42. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_TRACE_DYN] */
BEGIN
{
	@a = count();
	trace(@a);
	exit(0);
}
