/* SPDX-License-Identifier: Apache-2.0 */
/* A struct has no members without a name. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_MNAME] */
struct s { int; };
BEGIN
{
	exit(0);
}
