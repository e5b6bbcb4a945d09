/* SPDX-License-Identifier: Apache-2.0 */
/* What one copy cannot hold is an error of the program. */
/* flags: -q -xerrtags -e */
/* status: 1 */
/* stderr: [D_NOMEM] line 6: the clause copies 4294967312 bytes at once; 4096 is the most */
BEGIN
{
	tracemem(curthread, 0x100000010);
	exit(0);
}
