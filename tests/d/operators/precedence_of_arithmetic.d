/* SPDX-License-Identifier: Apache-2.0 */
/* * before +, - from left to right. */
BEGIN
{
	printf("%d %d %d %d\n", 2 + 3 * 4, 10 - 4 - 3, 2 * 3 % 4, 100 / 10 / 5);
	exit(0);
}
/* output:
14 3 2 2

*/
