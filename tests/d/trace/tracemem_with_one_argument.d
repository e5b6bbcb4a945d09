/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 24: two or three arguments. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
BEGIN
{
	tracemem(curthread);
	exit(0);
}
