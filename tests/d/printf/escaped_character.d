/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 28: %C prints the escape of what is not printable. */
BEGIN
{
	printf("%C%C%C\n", 'a', '\n', '\t');
	exit(0);
}
/* output:
a\n\t

*/
