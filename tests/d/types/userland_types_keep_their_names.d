/* SPDX-License-Identifier: Apache-2.0 */
/* userland before a type marks addresses of the process. */
/* flags: -q -c "/bin/echo hello" */
syscall::write:entry
/pid == $target && arg0 == 1/
{
	this->p = (userland char *)arg1;
	c = this->p[0];
	d = *(this->p + 4);
}
END
{
	printf("%c%c\n", c, d);
}
/* output:
hello
ho

*/
