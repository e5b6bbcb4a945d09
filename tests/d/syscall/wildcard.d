/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 9: a glob in the function's name. */
/* flags: -q -c /bin/true */
syscall::exit_gr*:entry
/pid == $target/
{
	printf("%s\n", probefunc);
}
/* output:
exit_group

*/
