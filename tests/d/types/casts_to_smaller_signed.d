/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 14: casts cut to the size and extend the sign. */
BEGIN
{
	x = 0x123456789abcdef;
	printf("%d %d %d %d\n", (char)x, (short)x, (int)x, (long)x);
	exit(0);
}
/* output:
-17 -12817 -1985229329 81985529216486895

*/
