/* SPDX-License-Identifier: Apache-2.0 */
/* The value of sum() is a number. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_AGG_SCALAR] */
struct s { int a; };
struct s v;
BEGIN
{
	@a = sum(v);
	exit(0);
}
