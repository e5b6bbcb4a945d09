/* SPDX-License-Identifier: Apache-2.0 */
/* Entry and return of a function of the target. */
/* flags: -q -c "/bin/echo hello" */
pid$target:libc.so.6:setlocale:entry
{
	n++;
}
pid$target:libc.so.6:setlocale:return
{
	m++;
}
END
{
	printf("%d\n", n > 0 && n == m);
}
/* output:
hello
1

*/
