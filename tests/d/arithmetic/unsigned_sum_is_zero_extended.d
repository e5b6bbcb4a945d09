/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: an unsigned sum is cut to 32 bits, too. */
uint32_t x;
BEGIN
{
	x = 0xffffffff;
	printf("%x %d\n", (uint64_t)(x + 1), (uint64_t)(x + 1) == 0);
	exit(0);
}
/* output:
0 1

*/
