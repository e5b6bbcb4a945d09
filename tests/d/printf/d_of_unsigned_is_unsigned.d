/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 27: %d and %i of an unsigned argument print it unsigned. */
BEGIN
{
	u = 0xffffffff;
	b = (uint8_t)200;
	l = 0xffffffffffffffff;
	printf("%d %i %d %d\n", u, u, b, l);
	exit(0);
}
/* output:
4294967295 4294967295 200 18446744073709551615

*/
