/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 11: numbers and strings. */
/* arguments: 5 'two words' */
BEGIN
{
	printf("%d %s\n", $1 * 2, $$2);
	exit(0);
}
/* output:
10 two words

*/
