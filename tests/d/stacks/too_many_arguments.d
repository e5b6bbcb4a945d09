/* SPDX-License-Identifier: Apache-2.0 */
/* stack() has at most one argument. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
BEGIN
{
	stack(1, 2);
	exit(0);
}
