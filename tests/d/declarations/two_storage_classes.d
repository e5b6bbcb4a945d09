/* SPDX-License-Identifier: Apache-2.0 */
/* A declaration has one storage class. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_CLASS] */
self this int a;
BEGIN
{
	exit(0);
}
