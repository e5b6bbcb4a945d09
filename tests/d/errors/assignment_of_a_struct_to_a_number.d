/* SPDX-License-Identifier: Apache-2.0 */
/* The types do not fit. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_INCOMPAT] */
struct s { int a; };
struct s v;
int x;
BEGIN
{
	x = v;
	exit(0);
}
