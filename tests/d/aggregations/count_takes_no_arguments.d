/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 20: count() has no arguments. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
BEGIN
{
	@a = count(1);
	exit(0);
}
