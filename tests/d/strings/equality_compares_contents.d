/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: two strings are equal when their bytes up to the NUL are. */
BEGIN
{
	a = "one";
	b = strjoin("o", "ne");
	printf("%d %d %d\n", a == b, a != b, a == "two");
	exit(0);
}
/* output:
1 0 0

*/
