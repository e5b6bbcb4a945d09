/* SPDX-License-Identifier: Apache-2.0 */
/* What follows \0 in a string is not printed. */
BEGIN
{
	printf("%s|%d\n", "abc\0def", strlen("abc\0def"));
	exit(0);
}
/* output:
abc|3

*/
