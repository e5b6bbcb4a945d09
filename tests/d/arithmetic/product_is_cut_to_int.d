/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: 65536 * 65537 does not fit an int. */
BEGIN
{
	x = 65536;
	y = 65537;
	printf("%d %d\n", x * y, (int64_t)x * y);
	exit(0);
}
/* output:
65536 4295032832

*/
