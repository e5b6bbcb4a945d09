/* SPDX-License-Identifier: Apache-2.0 */
/* As basename(3C). */
BEGIN
{
	printf("%s|%s|%s|%s|%s\n", basename("/foo/bar/baz"), basename("baz"), basename("/"),
	    basename("foo/"), basename(""));
	exit(0);
}
/* output:
baz|baz|/|foo|.

*/
