/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 1: clauses of one probe run in program order, END's last. */
/* flags: -q -c /bin/true */
syscall::exit_group:entry
/pid == $target/
{
	this->x = 1;
	printf("one ");
}
syscall::exit_group:entry
/pid == $target && this->x == 1/
{
	printf("two\n");
}
/* output:
one two

*/
