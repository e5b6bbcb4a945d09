/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 16: C's escapes, octal and hexadecimal ones. */
BEGIN
{
	printf("%d %d %d %d %d\n", '\n', '\t', '\\', '\'', '\"');
	printf("%d %d %d %d\n", '\0', '\101', '\x41', '\a');
	printf("%d %d %d %d\n", '\b', '\f', '\r', '\v');
	exit(0);
}
/* output:
10 9 92 39 34
0 65 65 7
8 12 13 11

*/
