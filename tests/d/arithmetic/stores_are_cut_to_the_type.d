/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: a store keeps the low bytes of the value. */
char c;
unsigned char u;
short s;
BEGIN
{
	c = 200;
	u = 300;
	s = 0x12345;
	printf("%d %d %d\n", c, u, s);
	exit(0);
}
/* output:
-56 44 9029

*/
