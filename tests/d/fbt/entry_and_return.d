/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the kernel, their arguments and results. */
/* unless: this kernel lets no program at its functions */
/* flags: -q -c "/bin/cat /dev/null" */
fbt::do_sys_openat2:entry
/pid == $target/
{
	self->in = 1;
	n++;
}
fbt::do_sys_openat2:return
/self->in/
{
	m++;
	self->in = 0;
}
END
{
	printf("%d\n", n == m && n > 0);
}
/* output:
1

*/
