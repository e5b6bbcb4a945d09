/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: stores and loads of each unsigned size. */
uint8_t a;
uint16_t b;
uint32_t c;
uint64_t d;
BEGIN
{
	a = -1;
	b = -1;
	c = -1;
	d = -1;
	printf("%d %d %d %d\n", a, b, c, d);
	exit(0);
}
/* output:
255 65535 4294967295 18446744073709551615

*/
