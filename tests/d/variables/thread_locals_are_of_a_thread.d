/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 19: two threads of one name have two variables. */
/* flags: -q -c "/usr/bin/timeout 5 /bin/true" */
syscall::exit_group:entry
/ppid == $target/
{
	self->x++;
	printf("%s %d\n", execname, self->x);
}
syscall::exit_group:entry
/pid == $target/
{
	self->x++;
	printf("%s %d\n", execname, self->x);
}
/* output:
true 1
timeout 1

*/
