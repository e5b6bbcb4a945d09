/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: the result of strjoin is cut to strsize. */
/* flags: -q -xstrsize=8 */
BEGIN
{
	printf("%s\n", strjoin("abcd", "efghij"));
	exit(0);
}
/* output:
abcdefgh

*/
