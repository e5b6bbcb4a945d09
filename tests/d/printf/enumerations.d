/* SPDX-License-Identifier: Apache-2.0 */
/* An enumeration prints its number. */
enum colour { RED, GREEN };
enum colour c;
BEGIN
{
	c = GREEN;
	printf("%d %d\n", c, RED);
	exit(0);
}
/* output:
1 0

*/
