/* SPDX-License-Identifier: Apache-2.0 */
/* Many globals keep their values apart. */
char c1, c2, c3;
short s1;
int i1, i2;
long l1;
string t1, t2;
BEGIN
{
	c1 = 1; c2 = 2; c3 = 3; s1 = 4; i1 = 5; i2 = 6; l1 = 7; t1 = "8"; t2 = "9";
	printf("%d%d%d%d%d%d%d%s%s\n", c1, c2, c3, s1, i1, i2, l1, t1, t2);
	exit(0);
}
/* output:
123456789

*/
