/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls by which return probes work are not the program's. */
/* flags: -q -c "/bin/echo hello" */
pid$target:libc.so.6:setlocale:return
{
	returned = 1;
}
syscall:::entry
/pid == $target && strstr(probefunc, "probe") != NULL/
{
	seen = probefunc;
}
END
{
	printf("%d %d\n", returned, seen == NULL);
}
/* output:
hello
1 1

*/
