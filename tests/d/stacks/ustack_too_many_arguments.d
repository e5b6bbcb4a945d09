/* SPDX-License-Identifier: Apache-2.0 */
/* ustack() has at most two arguments. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
BEGIN
{
	ustack(1, 2, 3);
	exit(0);
}
