/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes in strings are those of character constants. */
BEGIN
{
	printf("%s\n", "a\tb\\c\"d\x41\102");
	exit(0);
}
/* output:
a	b\c"dAB

*/
