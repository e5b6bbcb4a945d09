/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a system call's name. */
/* flags: -q -c /bin/true */
syscall::exit_group:entry
/pid == $target/
{
	printf("%s:%s:%s:%s\n", probeprov, probemod, probefunc, probename);
}
/* output:
syscall:vmlinux:exit_group:entry

*/
