/* SPDX-License-Identifier: Apache-2.0 */
/* A declared name has no module in front. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_SCOPE] */
int vmlinux`x;
BEGIN
{
	exit(0);
}
