/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 14 and 27: %u of -1 of two sizes. */
BEGIN
{
	x = -1;
	printf("%u %u %u\n", (char)x, x, (long long)x);
	exit(0);
}
/* output:
255 4294967295 18446744073709551615

*/
