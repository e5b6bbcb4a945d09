/* SPDX-License-Identifier: Apache-2.0 */
/* trunc() takes one or two arguments. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
BEGIN
{
	@a[1] = count();
	trunc(@a, 1, 2);
	exit(0);
}
