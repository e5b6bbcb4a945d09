/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: base and limit are needed. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
BEGIN
{
	@ = lquantize(1, 0);
	exit(0);
}
