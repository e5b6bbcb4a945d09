/* SPDX-License-Identifier: Apache-2.0 */
/* A stack may be a key: its frames, then the value. */
/* flags: -q -c /bin/true */
syscall::exit_group:entry
/pid == $target/
{
	@a[stack(3)] = count();
	@b[ustack(3)] = count();
}
END
{
	printa("%@d\n", @a);
	printa("%@d\n", @b);
}
/* output:
1
1

*/
