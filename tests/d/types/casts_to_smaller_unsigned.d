/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 14: casts to unsigned types cut only. */
BEGIN
{
	x = 0x123456789abcdef;
	printf("%d %d %d\n", (uint8_t)x, (uint16_t)x, (uint32_t)x);
	exit(0);
}
/* output:
239 52719 2309737967

*/
