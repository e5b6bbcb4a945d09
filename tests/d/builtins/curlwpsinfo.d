/* SPDX-License-Identifier: Apache-2.0 */
/* curlwpsinfo describes the thread. */
BEGIN
{
	printf("%d\n", curlwpsinfo->pr_lwpid == tid);
	printf("%d %c %d\n", curlwpsinfo->pr_state == SRUN, curlwpsinfo->pr_sname, curlwpsinfo->pr_flag);
	exit(0);
}
/* output:
1
1 R 0

*/
