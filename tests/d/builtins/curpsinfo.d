/* SPDX-License-Identifier: Apache-2.0 */
/* curpsinfo describes the process. */
BEGIN
{
	printf("%d %d %d\n", curpsinfo->pr_pid == pid, curpsinfo->pr_ppid == ppid,
	    curpsinfo->pr_fname == execname);
	exit(0);
}
/* output:
1 1 1

*/
