/* SPDX-License-Identifier: Apache-2.0 */
/* errno is 0 when the system call succeeded. */
/* flags: -q -c "/bin/cat /dev/null" */
syscall::openat:return
/pid == $target && (int)arg0 >= 0 && !n++/
{
	printf("%d\n", errno);
}
/* output:
0

*/
