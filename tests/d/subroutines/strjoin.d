/* SPDX-License-Identifier: Apache-2.0 */
/* Two strings become one, nested too. */
BEGIN
{
	printf("%s|%s|%s\n", strjoin("a", "b"), strjoin("", "x"), strjoin(strjoin("1", "2"), "3"));
	exit(0);
}
/* output:
ab|x|123

*/
