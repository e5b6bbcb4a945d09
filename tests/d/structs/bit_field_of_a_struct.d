/* SPDX-License-Identifier: Apache-2.0 */
/* A bit-field is an integer. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_BFTYPE] */
struct t { int x; };
struct s { struct t a : 3; };
BEGIN
{
	exit(0);
}
