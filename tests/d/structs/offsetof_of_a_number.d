/* SPDX-License-Identifier: Apache-2.0 */
/* offsetof wants a struct. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OFFSETOF_TYPE] */
BEGIN
{
	trace(offsetof(int, a));
	exit(0);
}
