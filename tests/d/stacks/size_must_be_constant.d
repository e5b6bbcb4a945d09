/* SPDX-License-Identifier: Apache-2.0 */
/* The number of frames is a constant. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_STACK_SIZE] */
BEGIN
{
	n = 5;
	stack(n);
	exit(0);
}
