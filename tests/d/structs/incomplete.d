/* SPDX-License-Identifier: Apache-2.0 */
/* There are no variables of a struct that is only declared. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_INCOMPLETE] */
struct only_declared_here;
struct only_declared_here v;
BEGIN
{
	exit(0);
}
