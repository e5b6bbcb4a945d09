/* SPDX-License-Identifier: Apache-2.0 */
/* A pattern that the process's number ends, and one that begins with pid. */
/* flags: -q -c "/bin/cat /dev/null" */
p*d$target:libc:setlocale:entry
/!n++/
{
	printf("%s of %d\n", probefunc, probeprov == strjoin("pid", lltostr($target)));
}
pid*:libc.so.6:setlocale:entry
/!m++/
{
	printf("%s\n", probename);
}
/* output:
setlocale of 1
entry

*/
