/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: 64-bit unsigned values beyond the sign bit are larger than small ones. */
uint64_t a, b;
BEGIN
{
	a = 0x8000000000000000;
	b = 1;
	printf("%d %d %d %d\n", a > b, a < b, a >= b, (int64_t)a < (int64_t)b);
	exit(0);
}
/* output:
1 0 1 1

*/
