/* SPDX-License-Identifier: Apache-2.0 */
/* printf needs a format. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
BEGIN
{
	printf();
	exit(0);
}
