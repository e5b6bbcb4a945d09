/* SPDX-License-Identifier: Apache-2.0 */
/* extern is accepted by nobody who wants a variable in D; auto is none either. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_BADCLASS] */
auto int a;
BEGIN
{
	exit(0);
}
