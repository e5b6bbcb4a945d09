/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 24. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_ARG] */
BEGIN
{
	tracemem(curthread, 16, "x");
	exit(0);
}
