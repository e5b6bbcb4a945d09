/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: <, <=, > and >= compare byte by byte. */
BEGIN
{
	a = "abc";
	b = "abd";
	printf("%d%d%d%d\n", a < b, a <= b, a > b, a >= b);
	printf("%d%d%d\n", a < "ab", a > "ab", "Z" < "a");
	exit(0);
}
/* output:
1100
011

*/
