/* SPDX-License-Identifier: Apache-2.0 */
/* Functions return no functions. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_COMBO] */
int f(int)(int);
BEGIN
{
	exit(0);
}
