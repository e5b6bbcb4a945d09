/* SPDX-License-Identifier: Apache-2.0 */
/* A function is no member. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_COMBO] */
struct s { int f(int); };
BEGIN
{
	exit(0);
}
