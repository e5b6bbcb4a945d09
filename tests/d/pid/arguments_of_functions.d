/* SPDX-License-Identifier: Apache-2.0 */
/* arg0 and arg1 of a function of the target. */
/* flags: -q -c "/bin/cat /dev/null" */
pid$target:libc.so.6:setlocale:entry
/!n++/
{
	printf("%d %s\n", (int)arg0, probefunc);
}
/* output:
6 setlocale

*/
