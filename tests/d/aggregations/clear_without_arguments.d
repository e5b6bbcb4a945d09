/* SPDX-License-Identifier: Apache-2.0 */
/* clear() takes one argument. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
BEGIN
{
	clear();
	exit(0);
}
