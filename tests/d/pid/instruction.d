/* SPDX-License-Identifier: Apache-2.0 */
/* An offset in a function. */
/* flags: -q -c /bin/true */
pid$target:libc.so.6:exit:0
{
	printf("%s %s\n", probefunc, probename);
}
/* output:
exit 0

*/
