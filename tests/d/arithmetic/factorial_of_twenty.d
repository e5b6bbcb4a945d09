/* SPDX-License-Identifier: Apache-2.0 */
/* 20! needs 62 bits. */
BEGIN
{
	x = 1ll * 2 * 3 * 4 * 5 * 6 * 7 * 8 * 9 * 10;
	x *= 11ll * 12 * 13 * 14 * 15;
	x *= 16ll * 17 * 18 * 19 * 20;
	printf("%d\n", x);
	exit(0);
}
/* output:
2432902008176640000

*/
