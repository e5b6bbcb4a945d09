/* SPDX-License-Identifier: Apache-2.0 */
/* D has no floating-point constants. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
BEGIN
{
	trace(1.5);
	exit(0);
}
