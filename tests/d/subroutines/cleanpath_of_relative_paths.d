/* SPDX-License-Identifier: Apache-2.0 */
/* What begins without a slash stays so. */
BEGIN
{
	printf("%s %s\n", cleanpath("a//b"), cleanpath("/"));
	exit(0);
}
/* output:
a/b /

*/
