/* SPDX-License-Identifier: Apache-2.0 */
/* The number of frames is a constant. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_USTACK_FRAMES] */
BEGIN
{
	n = 5;
	ustack(n);
	exit(0);
}
