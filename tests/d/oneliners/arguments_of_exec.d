/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
syscall::execve:entry
{
	printf("%-20Y %6d %s\n", walltimestamp, pid, copyinstr(arg0));
}
