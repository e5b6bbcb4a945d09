/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 49: with errtags the tag stands before the line, which is 8 here. */
/* flags: -q -xerrtags */
/* status: 1 */
/* stderr: tag_in_error_message.d: [D_DIV_ZERO] line 8: expression contains division by zero */
BEGIN
{
	y = 5 % 0;
	exit(0);
}
