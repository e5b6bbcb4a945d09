/* SPDX-License-Identifier: Apache-2.0 */
/* Unary minus, of a variable and of the smallest int. */
BEGIN
{
	x = 5;
	y = -2147483648;
	z = 1 << 31;
	printf("%d %d %d %d\n", -x, - -x, -y, -z);
	exit(0);
}
/* output:
-5 5 2147483648 -2147483648

*/
