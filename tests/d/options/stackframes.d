/* SPDX-License-Identifier: Apache-2.0 */
/* stackframes and ustackframes limit the depth of stacks. */
/* flags: -q -xstackframes=1 -c /bin/true */
syscall::exit_group:entry
/pid == $target/
{
	@a[stack()] = count();
}
END
{
	printa("%@d\n", @a);
}
/* output:
1

*/
