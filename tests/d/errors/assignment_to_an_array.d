/* SPDX-License-Identifier: Apache-2.0 */
/* An array is not assigned. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_ARRFUN] */
int a[3];
BEGIN
{
	a = 3;
	exit(0);
}
