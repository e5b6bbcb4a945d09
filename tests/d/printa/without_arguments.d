/* SPDX-License-Identifier: Apache-2.0 */
/* printa needs an aggregation. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
BEGIN
{
	printa();
	exit(0);
}
