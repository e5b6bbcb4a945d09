/* SPDX-License-Identifier: Apache-2.0 */
/* Many strings in one clause. */
BEGIN
{
	a = strjoin(strjoin("a", "b"), strjoin("c", "d"));
	b = strjoin(toupper(a), tolower(a));
	c = strjoin(substr(b, 2), substr(b, 0, 2));
	printf("%s %s %s\n", a, b, c);
	exit(0);
}
/* output:
abcd ABCDabcd CDabcdAB

*/
