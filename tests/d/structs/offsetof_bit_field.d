/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 15. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OFFSETOF_BITFIELD] */
struct s { int a : 3; };
BEGIN
{
	trace(offsetof(struct s, a));
	exit(0);
}
