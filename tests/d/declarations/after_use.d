/* SPDX-License-Identifier: Apache-2.0 */
/* A declaration after a use must agree with it. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_IDRED] */
BEGIN
{
	x = "text";
}
int x;
BEGIN
{
	exit(0);
}
