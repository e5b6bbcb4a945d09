/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 27: the size of the argument decides, whatever the modifiers say. */
BEGIN
{
	x = 0x123456789abcdef;
	printf("%d %ld %lld\n", x, x, x);
	printf("%d %hd %hhd\n", 7, (short)7, 7);
	exit(0);
}
/* output:
81985529216486895 81985529216486895 81985529216486895
7 7 7

*/
