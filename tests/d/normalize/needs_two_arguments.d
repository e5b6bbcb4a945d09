/* SPDX-License-Identifier: Apache-2.0 */
/* normalize() takes the divisor. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
BEGIN
{
	@a = count();
	normalize(@a);
	exit(0);
}
