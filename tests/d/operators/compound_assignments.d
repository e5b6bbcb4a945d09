/* SPDX-License-Identifier: Apache-2.0 */
/* All ten compound assignments. */
BEGIN
{
	x = 10;
	x += 5; printf("%d ", x);
	x -= 3; printf("%d ", x);
	x *= 4; printf("%d ", x);
	x /= 5; printf("%d ", x);
	x %= 5; printf("%d ", x);
	x <<= 3; printf("%d ", x);
	x >>= 1; printf("%d ", x);
	x |= 3; printf("%d ", x);
	x &= 18; printf("%d ", x);
	x ^= 7; printf("%d\n", x);
	exit(0);
}
/* output:
15 12 48 9 4 32 16 19 18 21

*/
