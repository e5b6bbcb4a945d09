/* SPDX-License-Identifier: Apache-2.0 */
/* A character constant ends on its line. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_CHR_NL] */
BEGIN
{
	trace('a
');
	exit(0);
}
