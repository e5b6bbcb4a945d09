/* SPDX-License-Identifier: Apache-2.0 */
/* A member that the struct does not have. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_TYPE_MEMBER] */
struct s { int a; };
struct s v;
BEGIN
{
	trace(v.b);
	exit(0);
}
