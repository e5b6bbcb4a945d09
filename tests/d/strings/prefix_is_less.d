/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: a prefix is less than the whole. */
BEGIN
{
	a = "abc";
	b = "abcd";
	printf("%d %d\n", a < b, b > a);
	exit(0);
}
/* output:
1 1

*/
