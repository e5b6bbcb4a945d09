/* SPDX-License-Identifier: Apache-2.0 */
/* As dirname(3C). */
BEGIN
{
	printf("%s|%s|%s|%s|%s\n", dirname("/foo/bar/baz"), dirname("baz"), dirname("/"),
	    dirname("/foo"), dirname("foo/bar/"));
	exit(0);
}
/* output:
/foo/bar|.|/|/|foo

*/
