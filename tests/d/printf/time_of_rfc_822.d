/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 28 and 29: %T has the year of the ISO week: 1 January 2005 belongs to 2004. */
BEGIN
{
	printf("%T\n", 1000000000ll * 1104537600);
	printf("%T\n", 1000000000ll * 1000000000);
	exit(0);
}
/* output:
Sat, 01 Jan 2004 00:00:00 UTC
Sun, 09 Sep 2001 01:46:40 UTC

*/
