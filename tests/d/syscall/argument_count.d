/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments beyond those of the call can be read. */
/* flags: -q -c /bin/true */
syscall::exit_group:entry
/pid == $target/
{
	x = arg5 + arg6 + arg9;
	printf("%d\n", (int)arg0);
}
/* output:
0

*/
