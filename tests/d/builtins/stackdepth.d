/* SPDX-License-Identifier: Apache-2.0 */
/* There is a kernel stack under a system call. */
/* flags: -q -c /bin/true */
syscall::exit_group:entry
/pid == $target/
{
	printf("%d\n", stackdepth > 0);
}
/* output:
1

*/
