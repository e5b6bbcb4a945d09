/* SPDX-License-Identifier: Apache-2.0 */
/* A number in another base: octal and hexadecimal have C's prefixes. */
BEGIN
{
	printf("%s %s %s %s\n", lltostr(255, 10), lltostr(255, 16), lltostr(8, 8), lltostr(5, 2));
	exit(0);
}
/* output:
255 0xff 010 101

*/
