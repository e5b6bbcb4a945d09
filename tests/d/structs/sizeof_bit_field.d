/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 15. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SIZEOF_BITFIELD] */
struct s { int a : 3; };
struct s v;
BEGIN
{
	trace(sizeof (v.a));
	exit(0);
}
