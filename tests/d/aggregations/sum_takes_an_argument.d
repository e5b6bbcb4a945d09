/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 20: sum() has one. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
BEGIN
{
	@a = sum();
	exit(0);
}
