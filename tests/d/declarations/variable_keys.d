/* SPDX-License-Identifier: Apache-2.0 */
/* The number of keys is fixed. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_PROTO_VARARGS] */
int a[int, ...];
BEGIN
{
	exit(0);
}
