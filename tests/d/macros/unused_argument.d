/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 11. */
/* flags: -xerrtags -e */
/* arguments: 5 */
/* status: 1 */
/* stderr: [D_MACRO_UNUSED] */
BEGIN
{
	exit(0);
}
