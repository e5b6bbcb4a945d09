/* SPDX-License-Identifier: Apache-2.0 */
/* copyin() of what a process writes. */
/* flags: -q -c "/bin/echo hello" */
syscall::write:entry
/pid == $target && arg0 == 1/
{
	this->p = (char *)copyin(arg1, arg2);
	n = arg2;
	c = this->p[0];
	d = this->p[4];
}
END
{
	printf("%d %c%c\n", n, c, d);
}
/* output:
hello
6 ho

*/
