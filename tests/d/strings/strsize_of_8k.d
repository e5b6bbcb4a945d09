/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21 and 46: large strings are possible. */
/* flags: -q -xstrsize=8k */
BEGIN
{
	s = "abc";
	printf("%s %d %d\n", s, strlen(s), sizeof (s));
	exit(0);
}
/* output:
abc 3 8192

*/
