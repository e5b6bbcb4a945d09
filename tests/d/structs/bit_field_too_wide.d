/* SPDX-License-Identifier: Apache-2.0 */
/* A bit-field fits its type. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_BFSIZE] */
struct s { char a : 9; };
BEGIN
{
	exit(0);
}
