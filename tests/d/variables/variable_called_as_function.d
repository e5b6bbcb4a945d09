/* SPDX-License-Identifier: Apache-2.0 */
/* A variable cannot be called. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_FUNC_IDKIND] */
BEGIN
{
	a = 2;
	trace(a(3));
	exit(0);
}
