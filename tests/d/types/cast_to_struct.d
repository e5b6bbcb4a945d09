/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing can be cast to a struct. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_CAST_INVAL] */
struct s { int a; };
BEGIN
{
	x = 3;
	trace(((struct s)x).a);
	exit(0);
}
