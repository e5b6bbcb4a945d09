/* SPDX-License-Identifier: Apache-2.0 */
/* A parameter has no storage class. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_PARMCLASS] */
int (*f)(static int);
BEGIN
{
	exit(0);
}
