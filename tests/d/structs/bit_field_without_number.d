/* SPDX-License-Identifier: Apache-2.0 */
/* The width is a constant. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_BFCONST] */
struct s { int a : -1; };
BEGIN
{
	exit(0);
}
