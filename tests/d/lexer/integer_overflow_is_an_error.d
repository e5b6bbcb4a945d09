/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 16: a constant of 2^64 fits no type. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_INT_OFLOW] */
BEGIN
{
	trace(18446744073709551616);
	exit(0);
}
