/* SPDX-License-Identifier: Apache-2.0 */
/* args[0] of exit says how: 1 is by itself. */
/* flags: -q -c /bin/true */
proc:::exit
/pid == $target/
{
	printf("%d\n", args[0]);
}
/* output:
1

*/
