/* SPDX-License-Identifier: Apache-2.0 */
/* An aggregation by probefunc. */
/* flags: -q -c /bin/true */
syscall::exit_group:entry
/pid == $target/
{
	@a[probefunc, probename] = count();
}
END
{
	printa("%s %s %@d\n", @a);
}
/* output:
exit_group entry 1

*/
