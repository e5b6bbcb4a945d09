/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 10: nothing that the target's main() does is missed. */
/* flags: -q -c "/bin/cat /dev/null" */
syscall:::entry
/pid == $target/
{
	@[probefunc] = count();
}
syscall::openat:entry
/pid == $target/
{
	n++;
}
END
{
	trunc(@);
	printf("%d\n", n > 0);
}
/* output:
1

*/
