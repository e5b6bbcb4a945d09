/* SPDX-License-Identifier: Apache-2.0 */
/* The comma operator evaluates both and gives the second. */
BEGIN
{
	x = (y = 3, y + 4);
	printf("%d %d\n", x, y);
	exit(0);
}
/* output:
7 3

*/
