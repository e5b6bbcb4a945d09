/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of an inline have names. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_PROTO_NAME] */
inline int twice[int] = 2;
BEGIN
{
	exit(0);
}
