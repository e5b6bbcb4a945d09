/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: exactly strsize characters are not cut. */
/* flags: -q -xstrsize=8 */
BEGIN
{
	a = "12345678";
	b = strjoin("123", "45678");
	printf("%s %d %d\n", a, strlen(a), a == b);
	exit(0);
}
/* output:
12345678 8 1

*/
