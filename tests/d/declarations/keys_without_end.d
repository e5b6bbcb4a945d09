/* SPDX-License-Identifier: Apache-2.0 */
/* Keys are a fixed list. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_PROTO_VARARGS] */
int x[...];
BEGIN
{
	exit(0);
}
