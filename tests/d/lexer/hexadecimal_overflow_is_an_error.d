/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 16: seventeen hexadecimal digits fit no type. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_INT_OFLOW] */
BEGIN
{
	trace(0x1ffffffffffffffff);
	exit(0);
}
