/* SPDX-License-Identifier: Apache-2.0 */
/* PF_FORKNOEXEC is not set of a program that was run, a thread that runs is not stopped; no terminal
 * of its own under setsid. */
/* flags: -q -c "setsid -w /bin/true" */
syscall::exit_group:entry
/execname == "true" && (pid == $target || ppid == $target)/
{
	printf("%d %d %d\n", curpsinfo->pr_flag & 0x40, curlwpsinfo->pr_flag,
	    (int)curpsinfo->pr_ttydev);
}
/* output:
0 0 -1

*/
