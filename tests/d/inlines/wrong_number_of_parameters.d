/* SPDX-License-Identifier: Apache-2.0 */
/* All parameters are needed. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
inline int product[int a, int b] = a * b;
BEGIN
{
	trace(product[3]);
	exit(0);
}
