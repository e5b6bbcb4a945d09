/* SPDX-License-Identifier: Apache-2.0 */
/* As basename(3C). */
BEGIN
{
	printf("%s|%s|%s\n", basename("/foo/bar///"), basename("///"), basename("//a"));
	exit(0);
}
/* output:
bar|/|a

*/
