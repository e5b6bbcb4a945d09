/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: ++ of a char at its limit. */
char c;
unsigned char u;
BEGIN
{
	c = 127;
	u = 255;
	c++;
	u++;
	printf("%d %d\n", c, u);
	u--;
	printf("%d\n", u);
	exit(0);
}
/* output:
-128 0
255

*/
