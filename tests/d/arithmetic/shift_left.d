/* SPDX-License-Identifier: Apache-2.0 */
/* Shifts to the left, cut to the type of the left operand. */
BEGIN
{
	one = 1;
	n = 31;
	printf("%d %d %d\n", one << 4, one << n, (long)one << n);
	exit(0);
}
/* output:
16 -2147483648 2147483648

*/
