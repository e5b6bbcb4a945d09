/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 49: the message has the file and the line. The error is in line 9 of this file. */
/* flags: -q */
/* status: 1 */
/* stderr: line 9: expression contains division by zero */
BEGIN
{
	x = 1;
	y = x / 0;
	exit(0);
}
