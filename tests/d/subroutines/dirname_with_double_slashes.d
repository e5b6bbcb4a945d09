/* SPDX-License-Identifier: Apache-2.0 */
/* As dirname(3C). */
BEGIN
{
	printf("%s|%s\n", dirname("/foo//bar"), dirname("a/b/c"));
	exit(0);
}
/* output:
/foo|a/b

*/
