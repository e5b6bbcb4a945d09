/* SPDX-License-Identifier: Apache-2.0 */
/* ppid is the parent of the process. */
/* flags: -q -c /bin/true */
syscall::exit_group:entry
/pid == $target/
{
	printf("%d\n", ppid == $pid);
}
/* output:
1

*/
