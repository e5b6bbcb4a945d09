/* SPDX-License-Identifier: Apache-2.0 */
/* pid, tid and the thread's struct agree. */
BEGIN
{
	printf("%d %d %d\n", pid == $pid, curthread->tgid == pid, curthread->pid == tid);
	exit(0);
}
/* output:
1 1 1

*/
