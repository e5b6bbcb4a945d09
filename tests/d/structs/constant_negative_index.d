/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 17: a negative constant index. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_ARR_BOUNDS] */
struct s { int a[16]; };
struct s v;
BEGIN
{
	trace(v.a[-1]);
	exit(0);
}
