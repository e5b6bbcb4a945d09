/* SPDX-License-Identifier: Apache-2.0 */
/* Array dimensions have a limit. */
/* status: 1 */
/* stderr: line */
struct s { int a[0x40000000][16]; };
BEGIN
{
	exit(0);
}
