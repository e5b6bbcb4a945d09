/* SPDX-License-Identifier: Apache-2.0 */
/* void is no key. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_PROTO_TYPE] */
int a[void, int];
BEGIN
{
	exit(0);
}
