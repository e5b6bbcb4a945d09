/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: the empty string is found at the start. */
BEGIN
{
	printf("%d %d\n", index("abc", ""), index("", "a"));
	exit(0);
}
/* output:
0 -1

*/
