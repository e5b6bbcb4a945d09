/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: constant expressions have C's values, too. */
BEGIN
{
	printf("%d %d %d\n", -7 / 2, -7 % 2, 7 / -2);
	printf("%d\n", 2147483647 + 1);
	printf("%u\n", 4294967295 + 1);
	exit(0);
}
/* output:
-3 -1 -3
-2147483648
4294967296

*/
