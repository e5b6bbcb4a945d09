/* SPDX-License-Identifier: Apache-2.0 */
/* The divisor is a number. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_ARG] */
BEGIN
{
	@a = count();
	normalize(@a, "x");
	exit(0);
}
