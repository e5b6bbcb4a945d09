/* SPDX-License-Identifier: Apache-2.0 */
/* #error stops the compilation with its text. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRAGERR] */
/* stderr: #error: stop here */
#error stop here
BEGIN
{
	exit(0);
}
