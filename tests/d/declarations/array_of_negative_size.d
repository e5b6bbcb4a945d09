/* SPDX-License-Identifier: Apache-2.0 */
/* The size of an array is positive. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_ARRSUB] */
int a[-1];
BEGIN
{
	exit(0);
}
