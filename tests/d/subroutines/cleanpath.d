/* SPDX-License-Identifier: Apache-2.0 */
/* Double slashes, . and .. are resolved. */
BEGIN
{
	printf("%s %s %s\n", cleanpath("/foo/./bar//baz"), cleanpath("/foo/bar/../baz"),
	    cleanpath("/foo/bar/../../.."));
	exit(0);
}
/* output:
/foo/bar/baz /foo/baz /

*/
