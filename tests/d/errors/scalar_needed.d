/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 42: ! of a struct. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_SCALAR] */
struct s { int a; };
struct s v;
BEGIN
{
	trace(!v);
	exit(0);
}
