/* SPDX-License-Identifier: Apache-2.0 */
/* What follows the digits is ignored, as are blanks before them. */
BEGIN
{
	printf("%d %d %d\n", strtoll("12abc"), strtoll("   7"), strtoll("abc"));
	exit(0);
}
/* output:
12 7 0

*/
