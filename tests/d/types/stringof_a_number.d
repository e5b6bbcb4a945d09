/* SPDX-License-Identifier: Apache-2.0 */
/* stringof takes what is like a string, or an address. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_STRINGOF_TYPE] */
struct s { int a; };
struct s v;
BEGIN
{
	trace(stringof (v));
	exit(0);
}
