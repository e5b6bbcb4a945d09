/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 16: a character constant is an int. */
BEGIN
{
	printf("%d %d %d\n", 'A', '0', sizeof ('A'));
	exit(0);
}
/* output:
65 48 4

*/
