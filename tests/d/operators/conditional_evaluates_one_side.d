/* SPDX-License-Identifier: Apache-2.0 */
/* The side that is not chosen is not evaluated. */
BEGIN
{
	n = 0;
	m = 0;
	x = 1 ? ++n : ++m;
	y = n == 0 ? ++n : ++m;
	printf("%d %d %d %d\n", x, y, n, m);
	exit(0);
}
/* output:
1 1 1 1

*/
