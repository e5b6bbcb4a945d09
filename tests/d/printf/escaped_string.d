/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 28: %S prints escapes for what is not printable. */
BEGIN
{
	printf("%S\n", "a\tb\nc\"d\\");
	exit(0);
}
/* output:
a\tb\nc\"d\\

*/
