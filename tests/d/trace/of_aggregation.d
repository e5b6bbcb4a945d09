/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 42. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_TRACE_AGG] */
BEGIN
{
	@a = count();
	trace(@a);
	exit(0);
}
