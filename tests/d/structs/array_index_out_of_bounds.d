/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 17 and 50: a constant index beyond the end. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_ARR_BOUNDS] */
/* stderr: index outside array bounds: 256, max is 16 */
struct s { int a[16]; };
struct s v;
BEGIN
{
	v.a[256] = 1;
	exit(0);
}
