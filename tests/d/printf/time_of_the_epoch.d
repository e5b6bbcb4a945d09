/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 28: %Y, nanoseconds since 1970; days of one digit have a space in front. */
BEGIN
{
	printf("%Y\n%Y\n%Y\n", 0ll, 1000000000ll * 86399, 1000000000ll * 1000000000);
	exit(0);
}
/* output:
1970 Jan  1 00:00:00
1970 Jan  1 23:59:59
2001 Sep  9 01:46:40

*/
