/* SPDX-License-Identifier: Apache-2.0 */
/* denormalize() takes one argument. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
BEGIN
{
	@a = count();
	denormalize(@a, 3);
	exit(0);
}
