/* SPDX-License-Identifier: Apache-2.0 */
/* arg0 and arg1 of a return are the result. */
/* flags: -q -c "/bin/cat /dev/null" */
syscall::openat:return
/pid == $target && !n++/
{
	printf("%d %d\n", arg0 == arg1, arg1 > 0);
}
/* output:
1 1

*/
