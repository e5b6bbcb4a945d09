/* SPDX-License-Identifier: Apache-2.0 */
/* curlwpsinfo->pr_syscall is -1 in a function of the program. */
/* flags: -q -c /bin/true */
pid$target:libc.so.6:exit:entry
{
	printf("%s %d\n", probefunc, curlwpsinfo->pr_syscall);
}
/* output:
exit -1

*/
