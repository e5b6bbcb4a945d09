/* SPDX-License-Identifier: Apache-2.0 */
/* A format longer than the default size of strings. */
/* flags: -q -xstrsize=16 */
BEGIN
{
	printf("a format that is longer than a string of the program: %s\n", "0123456789abcdefgh");
	exit(0);
}
/* output:
a format that is longer than a string of the program: 0123456789abcdef

*/
