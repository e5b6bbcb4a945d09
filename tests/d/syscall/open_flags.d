/* SPDX-License-Identifier: Apache-2.0 */
/* Several arguments of one call. */
/* flags: -q -c "/bin/cp /dev/null /dev/null" */
int n;
syscall::openat:entry
/pid == $target && !n/
{
	this->name = copyinstr(arg1);
	n = this->name == "/dev/null";
	printf("%s", n ? "opened " : "");
}
END
{
	printf("%d\n", n);
}
/* output:
opened 1

*/
