/* SPDX-License-Identifier: Apache-2.0 */
/* The right operand of && is not evaluated when the left one is 0. */
BEGIN
{
	n = 0;
	x = 0 && ++n;
	y = n && ++n;
	z = 1 && ++n;
	printf("%d %d %d %d\n", x, y, z, n);
	exit(0);
}
/* output:
0 0 1 1

*/
