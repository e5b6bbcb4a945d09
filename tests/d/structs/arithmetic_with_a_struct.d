/* SPDX-License-Identifier: Apache-2.0 */
/* A struct is no number. */
/* status: 1 */
/* stderr: line */
struct s { int a; };
struct s v;
BEGIN
{
	trace(v + 1);
	exit(0);
}
