/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is not there. */
/* flags: -q -xerrtags */
/* status: 1 */
/* stderr: [D_PROC_GRAB] line 6: failed to grab pid 4194305: No such process */
pid4194305:libc.so.6:exit:entry
{
	exit(0);
}
