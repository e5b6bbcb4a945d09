/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: the literal may stand on either side. */
BEGIN
{
	s = "abc";
	printf("%d %d\n", "abc" == s, "abd" > s);
	exit(0);
}
/* output:
1 1

*/
