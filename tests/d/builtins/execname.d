/* SPDX-License-Identifier: Apache-2.0 */
/* The name of the process that fired. */
/* flags: -q -c /bin/true */
syscall::exit_group:entry
/pid == $target/
{
	printf("%s %d\n", execname, strlen(execname));
}
/* output:
true 4

*/
