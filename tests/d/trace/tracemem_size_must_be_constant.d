/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 24: the second argument is a constant. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_TRACEMEM_SIZE] */
BEGIN
{
	n = 4;
	tracemem(curthread, n);
	exit(0);
}
