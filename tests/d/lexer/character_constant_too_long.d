/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 16: at most as many bytes as the largest integer has. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_CHR_OFLOW] */
BEGIN
{
	trace('abcdefghi');
	exit(0);
}
