/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 44: a bad address of the user has a code of its own or that of all. */
/* flags: -q -c /bin/true */
syscall::exit_group:entry
/pid == $target/
{
	x = *(int *)copyin(0x10, 4);
	printf("wrong\n");
}
ERROR
{
	printf("%d %x\n", arg4 == 1 || arg4 == 7, arg5);
}
/* output:
1 10

*/
