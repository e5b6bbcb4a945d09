/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 20: an associative array has no value without its key. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_IDENT_BADREF] */
BEGIN
{
	a[1] = 2;
	trace(a + 1);
	exit(0);
}
