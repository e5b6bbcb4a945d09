/* SPDX-License-Identifier: Apache-2.0 */
/* The file ends behind the backslash of a string. */
/* flags: -xerrtags */
/* status: 1 */
/* stderr: [D_SYNTAX] line 8: end-of-file encountered before matching " */
BEGIN
{
	trace("cut\