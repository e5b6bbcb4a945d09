/* SPDX-License-Identifier: Apache-2.0 */
/* The right operand of || is not evaluated when the left one is not 0. */
BEGIN
{
	n = 0;
	x = 1 || ++n;
	y = n || ++n;
	printf("%d %d %d\n", x, y, n);
	exit(0);
}
/* output:
1 1 1

*/
