/* SPDX-License-Identifier: Apache-2.0 */
/* A library is named by its file, with as much of its version as one likes. */
/* flags: -q -c true */
BEGIN
{
	exit(0);
}
pid$target:libc:malloc:entry,
pid$target:libc.so:malloc:entry,
pid$target:libc.so.6:malloc:entry
{
}
/* output:

*/
