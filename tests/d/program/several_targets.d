/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 10: tracing goes on until the last of several commands ends. */
/* flags: -q -c /bin/true -c /bin/false */
syscall::exit_group:entry
/progenyof($pid) && (execname == "true" || execname == "false")/
{
	@a[execname, (int)arg0] = count();
}
END
{
	printa("%s %d %@d\n", @a);
}
/* output:
false 1 1
true 0 1

*/
