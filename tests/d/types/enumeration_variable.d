/* SPDX-License-Identifier: Apache-2.0 */
/* A variable of an enumeration holds its number. */
enum colour { RED, GREEN, BLUE };
enum colour c;
BEGIN
{
	c = BLUE;
	printf("%d %d\n", c, c == BLUE);
	exit(0);
}
/* output:
2 1

*/
