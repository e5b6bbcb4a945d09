/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 19: self-> carries from entry to return. */
/* flags: -q -c "/bin/cat /dev/null" */
syscall::openat:entry
/pid == $target/
{
	self->t = timestamp;
}
syscall::openat:return
/self->t/
{
	n += timestamp > self->t;
	m++;
	self->t = 0;
}
END
{
	printf("%d\n", n == m && n > 0);
}
/* output:
1

*/
