/* SPDX-License-Identifier: Apache-2.0 */
/* A function of the target. */
/* flags: -q -c /bin/false */
pid$target:libc.so.6:exit:entry
{
	printf("%s %d\n", probefunc, (int)arg0);
}
/* output:
exit 1

*/
