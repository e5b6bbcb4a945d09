/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 16: a string ends on its line. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_STR_NL] */
BEGIN
{
	trace("a
b");
	exit(0);
}
