/* SPDX-License-Identifier: Apache-2.0 */
/* copyinstr() with a limit. */
/* flags: -q -c "/bin/cat /dev/null" */
syscall::openat:entry
/pid == $target/
{
	self->name = copyinstr(arg1, 5);
}
syscall::openat:entry
/self->name == "/dev"/
{
	printf("%s\n", self->name);
}
/* output:
/dev

*/
