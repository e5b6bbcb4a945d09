/* SPDX-License-Identifier: Apache-2.0 */
/* A struct is defined once. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_TYPERED] */
struct s { int a; };
struct s { int a; int b; };
BEGIN
{
	exit(0);
}
