/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: exactly strsize - 1 bytes are not cut. */
/* flags: -q -xstrsize=8 */
BEGIN
{
	a = "1234567";
	b = strjoin("123", "4567");
	printf("%s %d %d\n", a, strlen(a), a == b);
	exit(0);
}
/* output:
1234567 7 1

*/
