/* SPDX-License-Identifier: Apache-2.0 */
/* A control line ends with its line. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] line 9: end-of-file encountered before end of control line */
BEGIN
{
	exit(0);
#pragma D option quiet