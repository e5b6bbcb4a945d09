/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 20: the number of keys is fixed by the first use. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
BEGIN
{
	@a[1] = count();
	@a[1, 2] = count();
	exit(0);
}
