/* SPDX-License-Identifier: Apache-2.0 */
/* A member cannot be void. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_VOIDOBJ] */
struct s { int a; void b; };
BEGIN
{
	exit(0);
}
