/* SPDX-License-Identifier: Apache-2.0 */
/* There are no variables that are functions. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_COMBO] */
self int f(int);
BEGIN
{
	exit(0);
}
