/* SPDX-License-Identifier: Apache-2.0 */
/* A library without what follows its ".so", and the program as a.out. */
/* flags: -q -c /bin/false */
pid$target:libc:exit:entry,
pid$target:libc.so*:exit:entry
{
	printf("%s\n", probemod);
}
/* output:
libc.so.6
libc.so.6

*/
