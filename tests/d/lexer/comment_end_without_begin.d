/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a comment outside of one. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
BEGIN
{
	exit(0); */
}
