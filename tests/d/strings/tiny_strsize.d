/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: with strsize 2, two characters remain. */
/* flags: -q -xstrsize=2 */
BEGIN
{
	s = "abc";
	printf("%s %d\n", s, strlen(s));
	exit(0);
}
/* output:
ab 2

*/
