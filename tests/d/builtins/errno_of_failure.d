/* SPDX-License-Identifier: Apache-2.0 */
/* errno of a file that does not exist. */
/* flags: -q -c "/bin/cat /no/such/file" */
syscall::openat:entry
/pid == $target/
{
	self->name = copyinstr(arg1);
}
syscall::openat:return
/self->name == "/no/such/file"/
{
	printf("%d\n", errno);
	self->name = 0;
}
/* output:
2

*/
