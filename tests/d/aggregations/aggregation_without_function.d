/* SPDX-License-Identifier: Apache-2.0 */
/* @a alone does nothing. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_AGG_NULL] */
/* stderr: expression has null effect */
BEGIN
{
	@a;
	exit(0);
}
