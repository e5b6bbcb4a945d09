/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is not there. */
/* flags: -q -xerrtags */
/* status: 1 */
/* stderr: [D_PROC_GRAB] line 6: failed to grab process 4194305 */
pid4194305:libc.so.6:exit:entry
{
	exit(0);
}
