/* SPDX-License-Identifier: Apache-2.0 */
/* A #line directive numbers the following line. */
/* flags: -q */
/* status: 1 */
/* stderr: line 70: expression contains division by zero */
#line 68
BEGIN
{
	y = 5 % 0;
	exit(0);
}
