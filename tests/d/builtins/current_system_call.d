/* SPDX-License-Identifier: Apache-2.0 */
/* curlwpsinfo->pr_syscall is the number of the call that the thread is in. */
/* flags: -q -c /bin/true */
syscall::exit_group:entry
/pid == $target/
{
	printf("%s %d\n", probefunc, curlwpsinfo->pr_syscall);
}
/* output:
exit_group 231

*/
