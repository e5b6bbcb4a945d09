/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: what is longer than the string is not in it. */
BEGIN
{
	printf("%d %d\n", index("ab", "abc"), rindex("ab", "abc"));
	exit(0);
}
/* output:
-1 -1

*/
