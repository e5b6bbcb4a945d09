/* SPDX-License-Identifier: Apache-2.0 */
/* copyinto() fills scratch memory. */
/* flags: -q -c "/bin/cat /dev/null" */
syscall::openat:entry
/pid == $target/
{
	this->p = (char *)alloca(16);
	copyinto(arg1, 9, this->p);
	self->name = stringof(this->p);
}
syscall::openat:entry
/self->name == "/dev/null"/
{
	printf("%s\n", self->name);
}
/* output:
/dev/null

*/
