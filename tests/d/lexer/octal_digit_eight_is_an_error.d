/* SPDX-License-Identifier: Apache-2.0 */
/* 8 is no octal digit. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_INT_DIGIT] */
BEGIN
{
	trace(0128);
	exit(0);
}
