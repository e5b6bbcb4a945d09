/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 9: the arguments of a system call. */
/* flags: -q -c "/bin/cat /dev/null" */
syscall::openat:entry
/pid == $target/
{
	self->name = copyinstr(arg1);
}
syscall::openat:entry
/self->name == "/dev/null"/
{
	printf("%d %s\n", (int)arg0, self->name);
	self->name = 0;
}
/* output:
-100 /dev/null

*/
