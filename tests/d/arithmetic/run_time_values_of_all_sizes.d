/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: stores and loads of each signed size keep the sign. */
int8_t a;
int16_t b;
int32_t c;
int64_t d;
BEGIN
{
	a = b = c = d = -3;
	printf("%d %d %d %d %d\n", a, b, c, d, a + b + c + d);
	exit(0);
}
/* output:
-3 -3 -3 -3 -12

*/
