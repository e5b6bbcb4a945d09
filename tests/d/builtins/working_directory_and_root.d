/* SPDX-License-Identifier: Apache-2.0 */
/* cwd, root and execargs. */
/* flags: -q -c "/usr/bin/env -C /usr/bin /bin/true one two" */
syscall::exit_group:entry
/pid == $target/
{
	printf("%s|%s|%s\n", cwd, root, execargs);
}
/* output:
/usr/bin|/|/bin/true one two

*/
