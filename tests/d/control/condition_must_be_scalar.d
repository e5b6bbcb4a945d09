/* SPDX-License-Identifier: Apache-2.0 */
/* A struct is no condition. */
/* status: 1 */
/* stderr: line */
struct s { int a; };
struct s v;
BEGIN
{
	if (v) {
		exit(1);
	}
	exit(0);
}
