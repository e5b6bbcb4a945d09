/* SPDX-License-Identifier: Apache-2.0 */
/* print() takes values. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_ARG] */
BEGIN
{
	print(stack());
	exit(0);
}
