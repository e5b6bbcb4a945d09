/* SPDX-License-Identifier: Apache-2.0 */
/* So is the size of strings. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_USTACK_STRSIZE] */
BEGIN
{
	n = 5;
	ustack(3, n);
	exit(0);
}
