/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 10 and 11: $target in a predicate. */
/* flags: -q -c /bin/true */
syscall::exit_group:entry
/pid == $target/
{
	printf("%s %d\n", execname, (int)arg0);
}
/* output:
true 0

*/
