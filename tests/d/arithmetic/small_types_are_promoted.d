/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: char and short are computed in int. */
char c;
short s;
BEGIN
{
	c = 127;
	s = 32767;
	printf("%d %d %d\n", c + 1, s + 1, sizeof (c + c));
	exit(0);
}
/* output:
128 32768 4

*/
