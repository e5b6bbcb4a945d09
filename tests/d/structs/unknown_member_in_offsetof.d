/* SPDX-License-Identifier: Apache-2.0 */
/* The same in offsetof. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_TYPE_MEMBER] */
struct s { int a; };
BEGIN
{
	trace(offsetof(struct s, b));
	exit(0);
}
