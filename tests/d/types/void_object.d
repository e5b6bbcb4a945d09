/* SPDX-License-Identifier: Apache-2.0 */
/* There are no variables of void. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_VOIDOBJ] */
void x;
BEGIN
{
	exit(0);
}
