/* SPDX-License-Identifier: Apache-2.0 */
/* A string that the file's end cuts is an error at once. */
/* flags: -xerrtags */
/* status: 1 */
/* stderr: [D_SYNTAX] line 8: end-of-file encountered before matching " */
BEGIN
{
	trace("cut