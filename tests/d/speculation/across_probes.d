/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47: speculated at the entry of a system call, committed at its return. */
/* flags: -q -c "/bin/cat /dev/null" */
syscall::openat:entry
/pid == $target/
{
	self->spec = speculation();
	speculate(self->spec);
	printf("%s\n", copyinstr(arg1));
}
syscall::openat:return
/self->spec/
{
	self->name = 1;
}
syscall::openat:return
/self->spec && errno == 0/
{
	commit(self->spec);
}
syscall::openat:return
/self->spec/
{
	self->spec = 0;
	self->name = 0;
	n++;
}
END
/n > 0/
{
	printf("end\n");
}
/* output:
/dev/null
end

*/
