/* SPDX-License-Identifier: Apache-2.0 */
/* curlwpsinfo->pr_syscall is the number of the call that the thread is in. */
/* flags: -q -c /bin/true */
syscall::exit_group:entry, syscall::mmap:entry
/pid == $target && !seen[probefunc]++/
{
	@[probefunc, curlwpsinfo->pr_syscall] = count();
}
pid$target:libc.so.6:exit:entry
{
	@[probefunc, curlwpsinfo->pr_syscall] = count();
}
END
{
	printa("%s %d\n", @);
}
/* output:
exit -1
exit_group 231

*/
